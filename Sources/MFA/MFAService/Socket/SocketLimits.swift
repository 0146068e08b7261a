/// What one socket may ask of the server.
public struct SocketLimits: Sendable, Hashable {
  /// Bytes of a message.
  public var largestMessage = 1 << 16
  /// Requests that are not answered yet; further ones are refused.
  public var mostInFlight = 16
  /// Messages, of whatever kind; a socket that sends more is closed.
  public var messages = RateLimits.Bucket(size: 200, perSecond: 50)
  /// Bytes that may wait for a client to read them; a socket with more is closed.
  public var largestBacklog = 1 << 19
  /// How long a socket that is over may take to write the rest and its close frame, before it is cut off.
  public var closeTime = Duration.seconds(2)
  /// How long a session may be over before its sockets close, and a notice old before it is told, when it was another
  /// process that wrote it.
  public var watchInterval = Duration.milliseconds(500)

  public init() {}
}
