/// The source of the time of day. It is injected, so that a test can set the time.
public struct WallClock: Sendable {
  private let read: @Sendable () -> Timestamp

  /// Creates a clock that reads the time by calling `read`, on any thread.
  public init(_ read: @escaping @Sendable () -> Timestamp) { self.read = read }

  /// The current instant; each call reads it again.
  public func now() -> Timestamp { read() }

  /// The clock of the machine.
  public static let system = WallClock { .now() }
}
