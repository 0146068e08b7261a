public import ByteCoding
public import Foundation

/// A sign-in, from its first token to its end.
public struct LoginSession: Sendable, Hashable {
  /// The state of a session.
  public enum Scope: String, Sendable, Hashable {
    /// The first factor is proved, the second is not: the session may read the status and send the second factor.
    case pending = "mfa"
    /// The account has no second factor and needs one: the session may read the status and set one up.
    case setup = "mfa_setup"
    case full

    /// Whether this is as much as `least`.
    func reaches(_ least: Scope) -> Bool {
      switch least {
      case .pending: true
      case .setup: self != .pending
      case .full: self == .full
      }
    }
  }

  /// How long its refresh tokens can prolong it, from its start.
  public static let lifetime = Duration.seconds(30 * 86400)

  /// The maximum number of live sessions of one device. A further sign-in ends the oldest one.
  public static let mostOfDevice = 10

  public let id: UUID
  public let userID: UUID
  /// The device that signed in; `nil` once a session is a user's without one.
  public let deviceID: DeviceID?
  public let binding: Binding
  public var scope: Scope
  /// The authentication methods (RFC 8176): `pop`, `sms`, `otp`, …
  public var methods: [String]
  /// When a factor was last proved.
  public var authenticatedAt: Timestamp
  public let createdAt: Timestamp
  public let expiresAt: Timestamp
  /// The number of the refresh token that is good now; each use makes the next.
  public var generation: Int
  public var rotatedAt: Timestamp
  public var revokedAt: Timestamp?

  public init(
    id: UUID, userID: UUID, deviceID: DeviceID?, binding: Binding, scope: Scope, methods: [String],
    authenticatedAt: Timestamp, createdAt: Timestamp, expiresAt: Timestamp, generation: Int = 0,
    rotatedAt: Timestamp, revokedAt: Timestamp? = nil
  ) {
    self.id = id
    self.userID = userID
    self.deviceID = deviceID
    self.binding = binding
    self.scope = scope
    self.methods = methods
    self.authenticatedAt = authenticatedAt
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.generation = generation
    self.rotatedAt = rotatedAt
    self.revokedAt = revokedAt
  }

  public func isLive(at now: Timestamp) -> Bool { revokedAt == nil && now < expiresAt }

  /// Makes it a full one, for a second factor that tokens call `reference` (RFC 8176).
  mutating func prove(_ reference: String, at now: Timestamp) {
    scope = .full
    authenticatedAt = now
    methods += [reference, "mfa"].filter { !methods.contains($0) }
  }
}

/// The claims of a verified access token. The operation asks the store whether the session is still live.
public struct SessionProof: Sendable, Hashable {
  public let sessionID: UUID
  public let userID: UUID
  public let expiresAt: Timestamp

  public init(sessionID: UUID, userID: UUID, expiresAt: Timestamp) {
    self.sessionID = sessionID
    self.userID = userID
    self.expiresAt = expiresAt
  }

  /// Whether the token that proved it is good no longer.
  public func isExpired(at now: Timestamp) -> Bool { now >= expiresAt }
}
