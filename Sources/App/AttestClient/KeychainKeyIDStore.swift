#if canImport(Security)
  internal import ByteCoding
  internal import Foundation
  internal import Security

  /// A record in the keychain: generic passwords that never leave this device.
  ///
  /// The key identifier is stored under the account alone, as in the integration guide, so that an app keeps its
  /// registration when it switches from the guide's code to this library. Keychain items survive the deletion of an
  /// app, but its keys do not: the first assertion after a new installation then fails with `invalidKey`, and the
  /// session makes a new key.
  public struct KeychainKeyIDStore: KeyIDStore {
    private let account: String
    private var renewalAccount: String { account + ".renewedAt" }

    /// Creates a store that uses the keychain item `account`.
    public init(account: String = "com.example.app.attestKeyId") { self.account = account }

    /// Reads the keychain item. A missing item is an empty record.
    public func load() throws(KeyStoreError) -> KeyRecord {
      KeyRecord(
        keyID: try text(of: account),
        renewedAt: try text(of: renewalAccount).flatMap { Timestamp(rfc3339: $0) })
    }

    /// Deletes the keychain item and adds it again.
    public func save(_ record: KeyRecord) throws(KeyStoreError) {
      // The time first: were the second write lost, a new key would be made late rather than too often.
      try replace(renewalAccount, by: record.renewedAt?.description)
      try replace(account, by: record.keyID)
    }

    private func item(_ account: String) -> [CFString: Any] {
      [kSecClass: kSecClassGenericPassword, kSecAttrAccount: account]
    }

    private func text(of account: String) throws(KeyStoreError) -> String? {
      var query = item(account)
      query[kSecReturnData] = true
      var result: AnyObject?
      let status = SecItemCopyMatching(query as CFDictionary, &result)
      switch status {
      case errSecItemNotFound: return nil
      case errSecSuccess:
        guard let data = result as? Data, let text = String(data: data, encoding: .utf8) else {
          throw .malformed("the keychain item \(account) is not a text")
        }
        return text
      default: throw .unreadable("keychain status \(status)")
      }
    }

    private func replace(_ account: String, by text: String?) throws(KeyStoreError) {
      let query = item(account)
      guard let text else {
        let deleted = SecItemDelete(query as CFDictionary)
        guard deleted == errSecSuccess || deleted == errSecItemNotFound else {
          throw .unwritable("keychain status \(deleted)")
        }
        return
      }
      // An existing item is updated in one step. If the app exited between a deletion and an addition, the item would
      // be lost.
      let value: [CFString: Any] = [
        kSecValueData: Data(text.utf8), kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]
      var status = SecItemUpdate(query as CFDictionary, value as CFDictionary)
      if status == errSecItemNotFound {
        status = SecItemAdd(query.merging(value) { $1 } as CFDictionary, nil)
      }
      guard status == errSecSuccess else { throw .unwritable("keychain status \(status)") }
    }
  }
#endif
