public import ByteCoding
public import Foundation

/// A WebAuthn credential that is a second factor of a user: a hardware key, or a passkey that a telephone keeps
/// ("credential record", Web Authentication Level 3, section 4).
public struct SecurityKey: Sendable, Hashable {
  /// How many an account may have.
  public static let most = 10

  public let id: UUID
  public let userID: UUID
  public let credentialID: CredentialID
  public let publicKey: CredentialPublicKey
  /// The key's signature count at the last accepted use; 0 if the key does not count.
  public var signatureCount: UInt32
  /// Whether it may be copied to other devices of its user. Never changes.
  public let isBackupEligible: Bool
  public var isBackedUp: Bool
  /// The transports that the client reported (`usb`, `nfc`, …). They are returned to the client, and no decision
  /// depends on them.
  public let transports: [String]
  /// The user's name for the key.
  public var name: DeviceModel
  public let createdAt: Timestamp
  public var lastUsedAt: Timestamp?

  public init(
    id: UUID, userID: UUID, credentialID: CredentialID, publicKey: CredentialPublicKey, signatureCount: UInt32,
    isBackupEligible: Bool, isBackedUp: Bool, transports: [String], name: DeviceModel, createdAt: Timestamp,
    lastUsedAt: Timestamp? = nil
  ) {
    self.id = id
    self.userID = userID
    self.credentialID = credentialID
    self.publicKey = publicKey
    self.signatureCount = signatureCount
    self.isBackupEligible = isBackupEligible
    self.isBackedUp = isBackedUp
    self.transports = transports
    self.name = name
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
  }
}

/// An authenticator's identifier of a credential: 1 to 1023 bytes (Web Authentication Level 3, section 7.1).
public struct CredentialID: Sendable, Hashable {
  public static let longest = 1023

  public let bytes: [UInt8]

  /// Returns `nil` for no bytes and for more than 1023.
  public init?(bytes: [UInt8]) {
    guard (1...Self.longest).contains(bytes.count) else { return nil }
    self.bytes = bytes
  }
}

/// The challenge for a security key: for one session and one purpose, once, within its lifetime. A new one replaces
/// it.
public struct KeyChallenge: Sendable, Hashable {
  public enum Ceremony: String, Sendable, Hashable { case registration, authentication }

  /// The time that Web Authentication recommends for the person.
  public static let lifetime = Duration.seconds(300)

  public let sessionID: UUID
  public let ceremony: Ceremony
  /// 32 bytes.
  public let nonce: [UInt8]
  public let expiresAt: Timestamp
  public var isUsed: Bool

  public init(sessionID: UUID, ceremony: Ceremony, nonce: [UInt8], expiresAt: Timestamp, isUsed: Bool = false) {
    self.sessionID = sessionID
    self.ceremony = ceremony
    self.nonce = nonce
    self.expiresAt = expiresAt
    self.isUsed = isUsed
  }
}
