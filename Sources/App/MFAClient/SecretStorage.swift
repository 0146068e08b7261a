internal import AttestClient
internal import Foundation
internal import Locking

#if canImport(Security)
  internal import Security
#endif

/// Where the app keeps one secret, such as its session.
public protocol SecretStorage<Secret>: Sendable {
  /// What is kept.
  associatedtype Secret: Codable & Sendable

  /// Returns the secret; `nil` for none, or for one that cannot be read: the user then signs in again.
  func load() -> Secret?
  /// Replaces the secret, or removes it. The change is durable when this returns.
  func save(_ secret: Secret?) throws(StorageError)
}

/// A secret that ends with the process.
public final class MemorySecretStorage<Secret: Codable & Sendable>: SecretStorage {
  private let secret = LockedValue<Secret?>(nil)

  /// Creates a storage without a secret.
  public init() {}

  /// Returns the secret.
  public func load() -> Secret? { secret.withLock(\.self) }

  /// Replaces the secret.
  public func save(_ secret: Secret?) { self.secret.withLock { $0 = secret } }
}

#if !canImport(Darwin)
  /// A secret in a file of mode 0600, replaced in one step. It is protected from other users of the machine, and from no
  /// one who can read the owner's files.
  public struct FileSecretStorage<Secret: Codable & Sendable>: SecretStorage {
    private let path: String

    /// The storage at `path`, whose folder exists.
    public init(path: String) { self.path = path }

    /// Reads the file.
    public func load() -> Secret? {
      guard let bytes = try? PrivateFile.read(path) else { return nil }
      return try? JSONDecoder().decode(Secret.self, from: Data(bytes))
    }

    /// Replaces or removes the file.
    public func save(_ secret: Secret?) throws(StorageError) {
      do {
        if let secret {
          try PrivateFile.write([UInt8](JSONEncoder().encode(secret)), to: path)
        } else {
          try PrivateFile.remove(path)
        }
      } catch {
        throw StorageError("\(error)")
      }
    }
  }
#elseif canImport(Security)
  /// A secret in the keychain, as a generic password that never leaves this device and can be read after its first
  /// unlock.
  public struct KeychainSecretStorage<Secret: Codable & Sendable>: SecretStorage {
    private let account: String
    private var item: [CFString: Any] { [kSecClass: kSecClassGenericPassword, kSecAttrAccount: account] }

    /// The storage under the keychain item `account`, for example `com.example.app.mfa.session`.
    public init(account: String) { self.account = account }

    /// Reads the item.
    public func load() -> Secret? {
      var result: AnyObject?
      let query = item.merging([kSecReturnData: true]) { $1 }
      guard SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess, let data = result as? Data else {
        return nil
      }
      return try? JSONDecoder().decode(Secret.self, from: data)
    }

    /// Replaces the item in one step, or removes it.
    public func save(_ secret: Secret?) throws(StorageError) {
      var status = errSecSuccess
      if let secret {
        let data: Data
        do { data = try JSONEncoder().encode(secret) } catch { throw StorageError("\(error)") }
        let value: [CFString: Any] = [
          kSecValueData: data, kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        ]
        status = SecItemUpdate(item as CFDictionary, value as CFDictionary)
        if status == errSecItemNotFound { status = SecItemAdd(item.merging(value) { $1 } as CFDictionary, nil) }
      } else {
        status = SecItemDelete(item as CFDictionary)
        if status == errSecItemNotFound { status = errSecSuccess }
      }
      guard status == errSecSuccess else { throw StorageError("keychain status \(status)") }
    }
  }
#endif
