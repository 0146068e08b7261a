public import ByteCoding
public import Foundation

/// An account.
public struct User: Sendable, Hashable {
  public let id: UUID
  public let username: Username
  public let createdAt: Timestamp
  /// An operator's lock: no operation of the user works until it is lifted.
  public var lockedAt: Timestamp?
  /// Whether its sessions may administer accounts.
  public var isAdmin: Bool
  /// The app instance that created it; `nil` where it is not known, or where the account was read from a store.
  public var createdBy: Binding?
  /// Since when, as far as it is known: an older version did not keep it.
  public var adminSince: Timestamp?
  /// The language tag of the last sign-in or enrolment that named one; `nil` if none has.
  public let language: String?

  public init(
    id: UUID, username: Username, createdAt: Timestamp, lockedAt: Timestamp? = nil, isAdmin: Bool = false,
    adminSince: Timestamp? = nil, createdBy: Binding? = nil, language: String? = nil
  ) {
    self.id = id
    self.username = username
    self.createdAt = createdAt
    self.lockedAt = lockedAt
    self.isAdmin = isAdmin
    self.adminSince = adminSince
    self.createdBy = createdBy
    self.language = language
  }
}

/// How a device proves itself.
public enum MFAMethod: String, Sendable, Hashable, CaseIterable {
  case secureEnclave
  case smsOTP
}

/// The way in which a person unlocks the key of a device, as the app reports it. Only `Policy.deviceUnlock` depends
/// on it.
public enum AuthMethod: String, Sendable, Hashable, CaseIterable {
  case biometric
  case passcode
}

/// A device of an account. A removed device keeps its row (`removedAt`), so that its app is informed.
public struct Device: Sendable, Hashable {
  public let id: DeviceID
  public let userID: UUID
  public var model: DeviceModel
  public var method: MFAMethod
  public var authMethod: AuthMethod?
  /// Present only for `secureEnclave`.
  public var publicKey: DevicePublicKey?
  /// The number that codes go to, as the vault sealed it.
  public var phoneNumber: Sealed?
  /// The attested key that enrolled the device. Only this key may act for it.
  public var binding: Binding
  public var enrolledAt: Timestamp
  public var lastUsed: Timestamp?
  public var removedAt: Timestamp?

  public init(
    id: DeviceID, userID: UUID, model: DeviceModel, method: MFAMethod, authMethod: AuthMethod?,
    publicKey: DevicePublicKey?, phoneNumber: Sealed?, binding: Binding, enrolledAt: Timestamp,
    lastUsed: Timestamp? = nil, removedAt: Timestamp? = nil
  ) {
    self.id = id
    self.userID = userID
    self.model = model
    self.method = method
    self.authMethod = authMethod
    self.publicKey = publicKey
    self.phoneNumber = phoneNumber
    self.binding = binding
    self.enrolledAt = enrolledAt
    self.lastUsed = lastUsed
    self.removedAt = removedAt
  }

  /// Whether a key that Apple attested is bound to it.
  public var isAttested: Bool { binding != .debugBuild }
}

/// The binding of a device, session or trusted device to the app instance that made it.
public enum Binding: Sendable, Hashable {
  /// The hash of the attested key, as the gate reports it.
  case attestedKey(String)
  /// A debug build, which has no key of its own: all debug builds share one certificate, so this proves nothing.
  case debugBuild
}
