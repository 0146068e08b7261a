/// Where the devices of one user share the key of their vault, such as iCloud Keychain.
public protocol VaultKeychain: Sendable {
  /// The key, as far as it has arrived on this device.
  ///
  /// - Throws: `.itemNotFound` if there is none.
  func key() throws(VaultKeychainError) -> VaultKey
  /// Adds the key. It reaches other devices later.
  ///
  /// - Throws: `.duplicateItem` if one has arrived in the meantime. That one counts.
  func add(_ key: VaultKey) throws(VaultKeychainError)
}

/// Why a keychain does not give or take the key. No call ever removes or replaces a key.
public enum VaultKeychainError: Error, Sendable, Hashable {
  /// There is no such item (-25300), or the user does not synchronize the keychain.
  case itemNotFound
  /// There is such an item already (-25299).
  case duplicateItem
  /// The user did not authenticate, or the device is locked (-25293).
  case authenticationFailed
  /// Another result of the keychain.
  case other(Int32)

  /// The error of a result of Apple's `SecItem…` functions; `nil` for success.
  public init?(status: Int32) {
    switch status {
    case 0: return nil
    case -25300: self = .itemNotFound
    case -25299: self = .duplicateItem
    case -25293: self = .authenticationFailed
    default: self = .other(status)
    }
  }
}

extension VaultKeychainError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .itemNotFound: "the key of the vault is not in the keychain of this device"
    case .duplicateItem: "the keychain has a key already"
    case .authenticationFailed: "the keychain is locked"
    case .other(let status): "the keychain failed with \(status)"
    }
  }
}

/// The attributes of the item that holds the key. Its class is `kSecClassGenericPassword`.
///
/// A synchronizable item is a generic password, which iCloud Keychain carries from device to device. It is not a key of
/// the Secure Enclave: such keys are P-256, never leave their device, and could not open the vault on another one.
public struct KeychainItem: Sendable, Hashable {
  /// When an item can be read, and where.
  public enum Accessibility: Sendable, Hashable {
    /// `kSecAttrAccessibleAfterFirstUnlock`: after the first unlock since the device started. A backup carries it along.
    case afterFirstUnlock
    /// `kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly`: the same, on this device alone.
    case afterFirstUnlockThisDeviceOnly
  }

  /// `kSecAttrAccount`.
  public let account: String
  /// `kSecAttrService`.
  public let service: String
  /// `kSecAttrSynchronizable`.
  public let isSynchronizable: Bool
  /// `kSecAttrAccessible`.
  public let accessibility: Accessibility

  /// The key that all devices share. An item of one device alone could not be synchronizable.
  public static let vaultKey = KeychainItem(
    account: "vaultKey", service: "com.second.totp", isSynchronizable: true, accessibility: .afterFirstUnlock)
  /// The key of this device's own copy. It never leaves the device, not in a backup either.
  public static let deviceKey = KeychainItem(
    account: "deviceKey", service: "com.second.totp", isSynchronizable: false,
    accessibility: .afterFirstUnlockThisDeviceOnly)
}
