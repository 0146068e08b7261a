/// The limits of one socket.
public struct SocketLimits: Sendable, Hashable {
  /// The maximum size of a message, in bytes.
  public var largestMessage = 1 << 16
  /// The maximum number of requests in progress. Further requests are refused.
  public var mostInFlight = 16
  /// The rate limit for messages of any kind. A socket that exceeds it is closed.
  public var messages = RateLimits.Bucket(size: 200, perSecond: 50)
  /// The maximum size of frames waiting for the client, in bytes. A socket that exceeds it is closed.
  public var largestBacklog = 1 << 19
  /// The time for writing the remaining frames and the close frame before the connection is cut off.
  public var closeTime = Duration.seconds(2)
  /// How long a socket whose session has ended waits for the answers to requests in progress: one of them may have ended
  /// the session.
  public var answerTime = Duration.milliseconds(300)
  /// The interval of checks for changes by other processes: the maximum delay of their notices, and of the close
  /// after they revoked a session.
  public var watchInterval = Duration.milliseconds(500)

  /// Creates the default limits.
  public init() {}
}
