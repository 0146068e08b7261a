/// What the app remembers about its enrolment. No secret is part of it.
public struct MFARecord: Sendable, Hashable, Codable {
  /// The id that the app gave this device. It stays the same for as long as the app is installed, unless the server has
  /// it for another app instance.
  public var deviceID: String
  /// The account that the device is enrolled with; `nil` before enrolment.
  public var username: String?
  /// How the device signs in; `nil` before enrolment.
  public var method: MFAMethod?
  /// The key that the server knows; `nil` without a key.
  public var key: KeyReference?
  /// The number that receives codes, as the user entered it.
  public var phoneNumber: String?
  /// A change that was begun, of which the server may not know; `nil` for none.
  public var pendingChange: PendingChange?

  /// The record of a device that is not enrolled.
  public init(deviceID: String) { self.deviceID = deviceID }

  /// Whether the device is enrolled, as far as the app remembers.
  public var isEnrolled: Bool { method != nil }

  /// How the key is unlocked; `nil` without a key.
  public var authMethod: AuthMethod? { key?.protection.authMethod }

  /// The tags of keys that must not be deleted.
  var usedTags: [KeyTag] { [key?.tag, pendingChange?.key?.tag].compactMap(\.self) }
}

/// A key by its tag, as the app remembers it.
public struct KeyReference: Sendable, Hashable, Codable {
  /// The tag that finds the key.
  public let tag: KeyTag
  /// What unlocks the private key.
  public let protection: KeyProtection

  /// Refers to `pair`.
  public init(_ pair: KeyPair) { (tag, protection) = (pair.tag, pair.protection) }
}

/// A change of the enrolment that the app has begun. It is recorded before the server hears of it.
public enum PendingChange: Sendable, Hashable, Codable {
  /// Enrolling the device. Without a key, it signs in by codes to the number.
  case enroll(username: String, phoneNumber: String?, key: KeyReference?)
  /// Giving the server another key.
  case replaceKey(KeyReference)
  /// Removing the key, so that the device signs in by codes.
  case removeKey
  /// Replacing the number that receives codes.
  case changePhoneNumber(String)
  /// Removing the device from the account.
  case unenroll(username: String)

  /// The key that the server gets by this change.
  var key: KeyReference? {
    switch self {
    case .enroll(_, _, let key): key
    case .replaceKey(let key): key
    case .removeKey, .changePhoneNumber, .unenroll: nil
    }
  }
}
