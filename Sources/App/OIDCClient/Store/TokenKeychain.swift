public import Foundation
internal import Locking

/// The calls of Apple's keychain that a store of tokens needs, with Apple's statuses.
public protocol KeychainItems: Sendable {
  /// `SecItemAdd`. An item that exists already is -25299.
  func add(_ data: Data, account: String) -> OSStatus
  /// `SecItemUpdate`. A missing item is -25300.
  func update(_ data: Data, account: String) -> OSStatus
  /// `SecItemCopyMatching`.
  func find(_ account: String) -> (status: OSStatus, data: Data?)
  /// `SecItemDelete`.
  func delete(_ account: String) -> OSStatus
  /// The accounts of all items.
  func accounts() -> (status: OSStatus, accounts: [String])
}

/// A store in a keychain, which encrypts and guards by itself.
///
/// An app is one process, so that locks exclude only the tasks that use this value and its copies: a refresh whose answer
/// arrives after a logout must not store its tokens again.
public struct TokenKeychain: TokenStore {
  private static let notFound: OSStatus = -25_300
  private static let duplicate: OSStatus = -25_299
  private static let decode: OSStatus = -26_275

  private let items: any KeychainItems
  private let held = LockedValue<Set<String>>([])

  /// Uses `items`.
  public init(items: any KeychainItems) { self.items = items }

  public func account(_ name: String) throws(TokenStoreError) -> StoredAccount? {
    let (status, data) = items.find(name)
    if status == Self.notFound { return nil }
    guard status == 0 else { throw .keychain(status) }
    guard let data, let account = try? JSONDecoder().decode(StoredAccount.self, from: data) else {
      throw .keychain(Self.decode)
    }
    return account
  }

  public func write(_ account: StoredAccount, as name: String) throws(TokenStoreError) {
    guard let data = try? JSONEncoder().encode(account) else { throw .keychain(Self.decode) }
    var status = items.update(data, account: name)
    if status == Self.notFound {
      status = items.add(data, account: name)
      // Another task has added it since.
      if status == Self.duplicate { status = items.update(data, account: name) }
    }
    guard status == 0 else { throw .keychain(status) }
  }

  public func delete(_ name: String) throws(TokenStoreError) {
    let status = items.delete(name)
    guard status == 0 || status == Self.notFound else { throw .keychain(status) }
  }

  public func names() throws(TokenStoreError) -> [String] {
    let (status, accounts) = items.accounts()
    if status == Self.notFound { return [] }
    guard status == 0 else { throw .keychain(status) }
    return accounts.sorted()
  }

  public func lock(_ name: String) throws(TokenStoreError) -> (any TokenLock)? {
    held.withLock { $0.insert(name).inserted } ? NameLock(name, among: held) : nil
  }
}

/// A name in a set of names, until it is released.
private final class NameLock: TokenLock {
  private let name: LockedValue<String?>
  private let held: LockedValue<Set<String>>

  init(_ name: String, among held: LockedValue<Set<String>>) {
    self.name = LockedValue(name)
    self.held = held
  }

  deinit { release() }

  func release() {
    let released = name.withLock { name in
      defer { name = nil }
      return name
    }
    if let released { held.withLock { _ = $0.remove(released) } }
  }
}

#if canImport(Security)
  internal import Security

  /// Apple's keychain: items of this device alone, readable while it is unlocked.
  public struct AppleKeychainItems: KeychainItems {
    private let service: String

    /// Uses the items of `service`, such as the bundle identifier.
    public init(service: String) { self.service = service }

    public func add(_ data: Data, account: String) -> OSStatus {
      var item = query(account)
      item[kSecValueData as String] = data
      item[kSecAttrAccessible as String] = kSecAttrAccessibleWhenUnlockedThisDeviceOnly
      return SecItemAdd(item as CFDictionary, nil)
    }

    public func update(_ data: Data, account: String) -> OSStatus {
      SecItemUpdate(query(account) as CFDictionary, [kSecValueData as String: data] as CFDictionary)
    }

    public func find(_ account: String) -> (status: OSStatus, data: Data?) {
      var item = query(account)
      item[kSecReturnData as String] = true
      var found: CFTypeRef?
      let status = SecItemCopyMatching(item as CFDictionary, &found)
      return (status, found as? Data)
    }

    public func delete(_ account: String) -> OSStatus { SecItemDelete(query(account) as CFDictionary) }

    public func accounts() -> (status: OSStatus, accounts: [String]) {
      let all: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
        kSecReturnAttributes as String: true, kSecMatchLimit as String: kSecMatchLimitAll,
      ]
      var found: CFTypeRef?
      let status = SecItemCopyMatching(all as CFDictionary, &found)
      let items = found as? [[String: Any]] ?? []
      return (status, items.compactMap { $0[kSecAttrAccount as String] as? String })
    }

    private func query(_ account: String) -> [String: Any] {
      [
        kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
        kSecAttrAccount as String: account,
      ]
    }
  }
#endif
