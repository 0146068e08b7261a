#if canImport(Darwin)
  public import Darwin
#endif

/// Keeps the tokens of accounts, encrypted.
///
/// Calls block for a moment. Concurrent writers of one account must hold its lock.
public protocol TokenStore: Sendable {
  /// The account called `name`; `nil` if there is none.
  func account(_ name: String) throws(TokenStoreError) -> StoredAccount?
  /// Replaces the account: durable when this returns, and never half-written.
  func write(_ account: StoredAccount, as name: String) throws(TokenStoreError)
  /// Finds what would keep a later `write` of the account from succeeding, such as a full disk, without changing it.
  func prepare(for name: String) throws(TokenStoreError)
  /// Deletes the account. It is no error if there is none.
  func delete(_ name: String) throws(TokenStoreError)
  /// Deletes all accounts, readable or not.
  func clear() throws(TokenStoreError)
  /// The names of all accounts.
  func names() throws(TokenStoreError) -> [String]
  /// The names of the accounts that can be read, and the places of those that cannot.
  ///
  /// - Throws: If nothing can be read, such as without a key.
  func listing() throws(TokenStoreError) -> TokenListing
  /// Takes the lock of an account, which excludes other processes; `nil` if it is taken.
  func lock(_ name: String) throws(TokenStoreError) -> (any TokenLock)?
}

extension TokenStore {
  /// Finds nothing.
  public func prepare(for name: String) throws(TokenStoreError) {}

  /// All names.
  public func listing() throws(TokenStoreError) -> TokenListing { TokenListing(names: try names()) }

  /// Deletes each account that `names` returns.
  public func clear() throws(TokenStoreError) {
    for name in try names() { try delete(name) }
  }
}

/// The accounts of a store.
public struct TokenListing: Sendable, Hashable {
  /// An account that cannot be read, and so its name is not known.
  public struct Unreadable: Sendable, Hashable {
    /// The path of its file.
    public let place: String
    /// Why.
    public let error: TokenStoreError
  }

  /// The names, sorted.
  public let names: [String]
  /// The accounts that cannot be read, sorted by their places.
  public let unreadable: [Unreadable]

  init(names: [String], unreadable: [Unreadable] = []) {
    self.names = names.sorted()
    self.unreadable = unreadable.sorted { $0.place < $1.place }
  }
}

/// A lock that is held until it is released, or the process ends in whatever way.
public protocol TokenLock: Sendable {
  /// Releases it. Further calls do nothing.
  func release()
}

/// Why a store cannot be used.
public enum TokenStoreError: Error, Sendable, Hashable {
  /// A file cannot be read or written: which, and the reason.
  case file(String, reason: String)
  /// A file was changed, or belongs to another account.
  case damaged(String)
  /// A file was written by a later version of this program.
  case unknownVersion(String)
  /// There are tokens, and their key is missing: where it should be.
  case keyMissing(String)
  /// Tokens are encrypted under another key than the present one.
  case otherKey(String)
  /// Others can read the key: its file and the mode.
  case keyExposed(String, mode: String)
  /// The keychain refuses with this status.
  case keychain(OSStatus)
  /// The device did not recognise the person.
  case notRecognised
}

extension TokenStoreError {
  /// The path of the file; `nil` if the error is that of no file.
  var place: String? {
    switch self {
    case .file(let path, _), .damaged(let path), .unknownVersion(let path), .keyMissing(let path), .otherKey(let path),
      .keyExposed(let path, _):
      path
    case .keychain, .notRecognised: nil
    }
  }
}

extension TokenStoreError: CustomStringConvertible {
  /// One sentence without a full stop.
  public var description: String {
    switch self {
    case .file(let path, let reason): "\(path): \(reason)"
    case .damaged(let path): "\(path) was changed since it was written"
    case .unknownVersion(let path): "\(path) was written by a later version"
    case .keyMissing(let place): "there are tokens, and their key is missing: \(place)"
    case .otherKey(let path): "\(path) is encrypted under another key"
    case .keyExposed(let path, let mode): "others can read the key \(path): its mode is \(mode)"
    case .keychain(let status): "the keychain refuses with status \(status)"
    case .notRecognised: "the person was not recognised"
    }
  }

  /// What the person can do; `nil` where nothing is known to help.
  public var hint: String? {
    switch self {
    case .file: nil
    case .damaged: "sign in again, which replaces it"
    case .unknownVersion: "use the later version"
    case .keyMissing, .otherKey: "unlock or restore the key, or delete the tokens and sign in again"
    case .keyExposed(let path, _): "chmod 600 \(path), and sign in again if others may have read it"
    case .keychain, .notRecognised: "unlock the device and try again"
    }
  }
}
