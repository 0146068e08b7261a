#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// An instant, in nanoseconds since 1970-01-01T00:00:00Z without leap seconds.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// Whole seconds since the epoch, rounded down.
  public let seconds: Int64
  /// The nanoseconds of the second, 0 to 999,999,999.
  public let nanoseconds: Int32

  /// Creates the instant `nanoseconds` after `seconds`. Nanoseconds beyond a second are carried.
  public init(seconds: Int64, nanoseconds: Int64 = 0) {
    let (quotient, remainder) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let borrows = remainder < 0
    self.seconds = seconds.saturatingAdd(quotient - (borrows ? 1 : 0))
    self.nanoseconds = Int32(borrows ? remainder + 1_000_000_000 : remainder)
  }

  /// The instant `milliseconds` after the epoch.
  public init(milliseconds: Int64) {
    self.init(seconds: milliseconds / 1000, nanoseconds: milliseconds % 1000 * 1_000_000)
  }

  /// Milliseconds since the epoch, rounded down; the least or the greatest number for an instant beyond.
  public var milliseconds: Int64 {
    let rest = Int64(nanoseconds) / 1_000_000
    // Below zero the second is the next lower one, whose milliseconds may be beyond the range where the sum is not.
    let (whole, part) = seconds < 0 ? (seconds + 1, rest - 1000) : (seconds, rest)
    let (product, overflows) = whole.multipliedReportingOverflow(by: 1000)
    guard !overflows else { return seconds < 0 ? .min : .max }
    return product.saturatingAdd(part)
  }

  /// This instant without its fraction of a second, for display.
  public var wholeSecond: Timestamp { Timestamp(seconds: seconds) }

  /// The time of the system's wall clock. Read it at the edge and pass it on: rules get the instant as an argument.
  public static func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
  }

  /// This instant moved by `duration`, which may be negative.
  public func advanced(by duration: Duration) -> Timestamp {
    let (seconds, attoseconds) = duration.components
    return Timestamp(
      seconds: self.seconds.saturatingAdd(seconds),
      nanoseconds: Int64(nanoseconds) + attoseconds / 1_000_000_000)
  }

  /// How much later this instant is than `other`. Saturates for instants that are further apart than `Int64` has
  /// seconds.
  public func since(_ other: Timestamp) -> Duration {
    let (difference, overflows) = seconds.subtractingReportingOverflow(other.seconds)
    let seconds: Int64 = overflows ? (seconds < other.seconds ? .min + 1 : .max - 1) : difference
    return .seconds(seconds) + .nanoseconds(Int64(nanoseconds) - Int64(other.nanoseconds))
  }

  public static func < (first: Timestamp, second: Timestamp) -> Bool {
    (first.seconds, first.nanoseconds) < (second.seconds, second.nanoseconds)
  }
}

extension Int64 {
  fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }
}
