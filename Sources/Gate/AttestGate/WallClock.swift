public import ByteCoding

/// Where the gate reads the time of day. Injected, so that tests move it by hand.
public struct WallClock: Sendable {
  private let read: @Sendable () -> Timestamp

  public init(_ read: @escaping @Sendable () -> Timestamp) { self.read = read }

  /// The current instant; each call reads anew.
  public func now() -> Timestamp { read() }

  /// The machine's own clock.
  public static let system = WallClock { .now() }
}
