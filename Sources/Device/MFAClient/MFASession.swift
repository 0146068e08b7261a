internal import AttestClient
internal import Foundation
internal import Locking
public import MFAWire

/// The session of the signed-in user. Its tokens are secrets: neither its description nor a dump shows them.
public struct MFASession: Sendable, Hashable, Codable {
  /// The account.
  public var username: String
  /// The access token: a JWT.
  public var accessToken: String
  /// The refresh token. It can be used once.
  public var refreshToken: String
  /// What the session permits: `mfa`, `mfa_setup` or `full`.
  public var scope: String

  /// The session that `response` begins for `username`.
  public init(_ response: TokenResponse, of username: String) {
    self.username = username
    accessToken = response.token
    refreshToken = response.refreshToken
    scope = response.scope
  }
}

extension MFASession: CustomStringConvertible, CustomReflectable {
  public var description: String { "session of \(username)" }
  public var customMirror: Mirror { Mirror(self, children: ["username": username, "scope": scope]) }
}

/// Where the app keeps its session.
public protocol SessionStorage: Sendable {
  /// Returns the session; `nil` for none, or for one that cannot be read: the user then signs in again.
  func load() -> MFASession?
  /// Replaces the session, or removes it. The change is durable when this returns.
  func save(_ session: MFASession?) throws(StorageError)
}

/// A session that ends with the process. An app on Apple's platforms that uses this signs in after each start.
public final class MemorySessionStorage: SessionStorage {
  private let session = LockedValue<MFASession?>(nil)

  /// Creates a storage without a session.
  public init() {}

  /// Returns the session.
  public func load() -> MFASession? { session.withLock(\.self) }

  /// Replaces the session.
  public func save(_ session: MFASession?) { self.session.withLock { $0 = session } }
}

#if !canImport(Darwin)
  /// A session in a file of mode 0600, replaced in one step. It protects the tokens from other users of the machine,
  /// and from no one who can read the owner's files.
  public struct FileSessionStorage: SessionStorage {
    private let path: String

    /// The storage at `path`, whose folder exists.
    public init(path: String) { self.path = path }

    /// Reads the file.
    public func load() -> MFASession? {
      guard let bytes = try? PrivateFile.read(path) else { return nil }
      return try? JSONDecoder().decode(MFASession.self, from: Data(bytes))
    }

    /// Replaces or removes the file.
    public func save(_ session: MFASession?) throws(StorageError) {
      do {
        if let session {
          try PrivateFile.write([UInt8](JSONEncoder().encode(session)), to: path)
        } else {
          try PrivateFile.remove(path)
        }
      } catch {
        throw StorageError("\(error)")
      }
    }
  }
#endif
