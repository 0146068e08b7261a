public import ByteCoding
import Locking

/// A clock whose time changes only when a test advances it.
public final class ManualClock: Sendable {
  private let time: LockedValue<Timestamp>

  public init() { time = LockedValue(Timestamp(seconds: 1_767_225_600)) }

  public var wall: WallClock { WallClock { [time] in time.withLock { $0 } } }

  public func advance(by duration: Duration) {
    time.withLock { $0 = $0.advanced(by: duration) }
  }
}

extension ManualClock {
  public var now: Timestamp { wall.now() }
}
