public import ByteCoding
public import Foundation
public import OneTimePasswords

/// A shared secret of an authenticator app (RFC 6238).
public struct TOTPFactor: Sendable, Hashable {
  public let userID: UUID
  public var secret: Sealed
  public var parameters: TOTPParameters
  public let createdAt: Timestamp
  /// When the first code was given; before that the factor is only offered.
  public var confirmedAt: Timestamp?
  /// The newest step whose code was accepted. Codes of this step and of earlier ones are spent.
  public var lastStep: Int64
  /// By how many steps the clock of the authenticator is ahead of this one; 0 for a clock that is right.
  public var drift: Int64

  public init(
    userID: UUID, secret: Sealed, parameters: TOTPParameters, createdAt: Timestamp, confirmedAt: Timestamp? = nil,
    lastStep: Int64 = -1, drift: Int64 = 0
  ) {
    self.userID = userID
    self.secret = secret
    self.parameters = parameters
    self.createdAt = createdAt
    self.confirmedAt = confirmedAt
    self.lastStep = lastStep
    self.drift = drift
  }
}

/// How codes are computed from a secret.
public struct TOTPParameters: Sendable, Hashable {
  public typealias Algorithm = TOTPAlgorithm

  /// How a step becomes a code.
  let password: OneTimePassword
  /// 6 to 8.
  public let digits: Int
  /// Seconds of a step, 15 to 300.
  public let period: Int

  public var algorithm: Algorithm { password.algorithm }

  public static let standard = TOTPParameters(.standard, digits: 6, period: 30)

  /// `nil` if digits or period are outside their bounds.
  public init?(checkedAlgorithm algorithm: Algorithm, digits: Int, period: Int) {
    guard (6...8).contains(digits), (15...300).contains(period),
      let password = try? OneTimePassword(algorithm: algorithm, digits: digits)
    else { return nil }
    self.init(password, digits: digits, period: period)
  }

  private init(_ password: OneTimePassword, digits: Int, period: Int) {
    self.password = password
    self.digits = digits
    self.period = period
  }
}

/// A device that need not give the second factor, for 30 days from the day that it did.
public struct TrustedDevice: Sendable, Hashable {
  /// Trust is never prolonged.
  public static let lifetime = Duration.seconds(30 * 86400)

  public let id: Int64
  public let userID: UUID
  /// The keyed hash of the 256-bit token that the device keeps.
  public let tokenHash: [UInt8]
  public let binding: Binding
  public let name: String
  /// Of user agent and address: shown to the user, and never decided by.
  public let fingerprint: String
  public let address: String?
  public let createdAt: Timestamp
  public var lastUsedAt: Timestamp
  public let expiresAt: Timestamp

  public init(
    id: Int64, userID: UUID, tokenHash: [UInt8], binding: Binding, name: String, fingerprint: String, address: String?,
    createdAt: Timestamp, lastUsedAt: Timestamp, expiresAt: Timestamp
  ) {
    self.id = id
    self.userID = userID
    self.tokenHash = tokenHash
    self.binding = binding
    self.name = name
    self.fingerprint = fingerprint
    self.address = address
    self.createdAt = createdAt
    self.lastUsedAt = lastUsedAt
    self.expiresAt = expiresAt
  }
}

/// A notice for the devices of a user. Notices are ordered by number.
public struct Notice: Sendable, Hashable {
  public enum Kind: String, Sendable, Hashable {
    case deviceEnrolled, deviceRemoved, methodChanged, locked, unlocked, sessionRevoked, trustRevoked, mfaEnabled,
      mfaDisabled, emailConfirmed, securityKeyAdded, securityKeyRemoved, recoveryStarted, recoveryCancelled,
      recoveryCompleted, identityConnected, identityDisconnected, authenticatorAdded, authenticatorRemoved
    /// A security key's count of signatures did not grow: there may be a copy of it.
    case securityKeySuspected
  }

  public let userID: UUID
  /// Counts from 1 for each user, without gaps.
  public let sequence: Int64
  public let kind: Kind
  public let at: Timestamp
  /// The subject: the id of a device, session, trusted device, security key, authenticator or recovery; `nil` for the
  /// account as a whole.
  public let concerning: String?

  public init(userID: UUID, sequence: Int64, kind: Kind, at: Timestamp, concerning: String?) {
    self.userID = userID
    self.sequence = sequence
    self.kind = kind
    self.at = at
    self.concerning = concerning
  }
}
