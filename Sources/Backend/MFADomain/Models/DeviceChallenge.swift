public import ByteCoding
public import Foundation

/// A nonce that a device signs once, within its lifetime.
public struct DeviceChallenge: Sendable, Hashable {
  /// How long one lives.
  public static let lifetime = Duration.seconds(300)
  /// How many wrong signatures it outlives.
  public static let mostFailures = 5

  public let id: UUID
  /// The `Username.key` that the challenge was requested for, known or not.
  public let username: String
  public let deviceID: DeviceID
  /// 32 bytes.
  public let nonce: [UInt8]
  /// The attested key of the request.
  public let binding: Binding
  public let createdAt: Timestamp
  public let expiresAt: Timestamp
  public var failures: Int
  public var isUsed: Bool

  public init(
    id: UUID, username: String, deviceID: DeviceID, nonce: [UInt8], binding: Binding, createdAt: Timestamp,
    expiresAt: Timestamp, failures: Int = 0, isUsed: Bool = false
  ) {
    self.id = id
    self.username = username
    self.deviceID = deviceID
    self.nonce = nonce
    self.binding = binding
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.failures = failures
    self.isUsed = isUsed
  }

  /// Whether it can still be answered at `now`: the instant of its end is too late.
  public func isOpen(at now: Timestamp) -> Bool {
    !isUsed && failures < Self.mostFailures && now < expiresAt
  }
}
