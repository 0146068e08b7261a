public import ByteCoding
internal import Locking

/// A clock that only a test moves.
public final class ManualClock: Sendable {
  private let instant: LockedValue<Timestamp>

  public init(_ instant: Timestamp = Timestamp(seconds: 1_800_000_000)) { self.instant = LockedValue(instant) }

  public var now: Timestamp { instant.withLock { $0 } }

  public func advance(by duration: Duration) { instant.withLock { $0 = $0.advanced(by: duration) } }

  /// The clock for the gate.
  public var wallClock: WallClock { WallClock { self.now } }
}
