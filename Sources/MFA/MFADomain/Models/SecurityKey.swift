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
  /// The key's own count of its signatures, as of the last one taken; 0 if it does not count.
  public var signatureCount: UInt32
  /// Whether it may be copied to other devices of its user. Never changes.
  public let isBackupEligible: Bool
  public var isBackedUp: Bool
  /// How a client can reach it (`usb`, `nfc`, …), as the client said; handed back to it, and never decided by.
  public let transports: [String]
  /// What its user calls it.
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

/// What an authenticator calls a credential: 1 to 1023 bytes (Web Authentication Level 3, section 7.1).
public struct CredentialID: Sendable, Hashable {
  public static let longest = 1023

  public let bytes: [UInt8]

  /// `nil` for nothing, and for more than 1023 bytes.
  public init?(bytes: [UInt8]) {
    guard (1...Self.longest).contains(bytes.count) else { return nil }
    self.bytes = bytes
  }
}

/// What a security key is to sign: for one session and one purpose, once, within its lifetime. A new one invalidates
/// it.
public struct KeyChallenge: Sendable, Hashable {
  public enum Ceremony: String, Sendable, Hashable { case registration, authentication }

  /// What Web Authentication recommends for the time that a person may take.
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
