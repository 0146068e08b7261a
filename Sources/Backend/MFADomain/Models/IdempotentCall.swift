public import ByteCoding

/// A call that its client may repeat under one key, and its answer once there is one.
public struct IdempotentCall: Sendable, Hashable {
  /// How long a call and its answer are kept: longer than any client retries.
  public static let lifetime = Duration.seconds(86400)

  /// After this time, a call without an answer counts as lost with its process.
  static let longestRun = Duration.seconds(60)

  /// The number of calls that are kept for one app instance. The oldest ones make room for new ones.
  public static let mostOfCaller = 1000

  /// A hash of the app instance and of the key that it chose.
  public let id: String
  /// The app instance.
  public let caller: String
  /// A hash of the operation, its session and its input.
  public let fingerprint: [UInt8]
  public let startedAt: Timestamp
  /// The sealed answer; `nil` while the call runs.
  public let answer: Sealed?

  public init(id: String, caller: String, fingerprint: [UInt8], startedAt: Timestamp, answer: Sealed?) {
    self.id = id
    self.caller = caller
    self.fingerprint = fingerprint
    self.startedAt = startedAt
    self.answer = answer
  }
}

/// The reasons why a repeated call is refused.
public enum IdempotencyRefusal: Error, Sendable, Hashable {
  /// The key was used for another call.
  case keyReused
  /// The first call under the key has not ended.
  case inProgress
}
