#if canImport(Security)
  internal import Foundation
  internal import Security

  /// The key of a vault in Apple's keychain.
  public struct AppleKeychain: VaultKeychain {
    private let item: KeychainItem

    /// Uses `item`: the one that all devices share, unless another is wanted.
    public init(item: KeychainItem = .vaultKey) { self.item = item }

    public func key() throws(VaultKeychainError) -> VaultKey {
      var query = item.query
      query[kSecReturnData as String] = true
      var found: CFTypeRef?
      if let error = VaultKeychainError(status: SecItemCopyMatching(query as CFDictionary, &found)) { throw error }
      guard let data = found as? Data, let key = VaultKey(bytes: data) else { throw .itemNotFound }
      return key
    }

    public func add(_ key: VaultKey) throws(VaultKeychainError) {
      var query = item.query
      query[kSecValueData as String] = Data(key.bytes)
      query[kSecAttrAccessible as String] = item.accessibility.attribute
      if let error = VaultKeychainError(status: SecItemAdd(query as CFDictionary, nil)) { throw error }
    }
  }

  extension KeychainItem {
    /// The query that finds the item.
    var query: [String: Any] {
      [
        kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: account,
        kSecAttrService as String: service, kSecAttrSynchronizable as String: isSynchronizable,
      ]
    }
  }

  extension KeychainItem.Accessibility {
    fileprivate var attribute: CFString {
      switch self {
      case .afterFirstUnlock: kSecAttrAccessibleAfterFirstUnlock
      case .afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      }
    }
  }
#endif
