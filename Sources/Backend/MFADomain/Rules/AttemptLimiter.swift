public import ByteCoding

/// How often someone has guessed wrong, and how long they must wait for it.
///
/// Five failures within 15 minutes rest the factor for the remainder of them. Ten in a row lock it for 15 minutes,
/// and each failure after a lock locks it again for twice as long, up to a day. A hundred in a row lock it until an
/// operator lifts that (NIST SP 800-63B-4, section 3.2.2). A success forgets the failures. Each factor has a limit of
/// its own.
public struct AttemptLimiter: Sendable, Hashable {
  public static let window = Duration.seconds(900)
  public static let mostInWindow = 5
  public static let firstLockAfter = 10
  public static let longestLock = Duration.seconds(86400)
  public static let mostInARow = 100

  /// Failures since the last success.
  public private(set) var failuresInARow: Int
  public private(set) var windowStart: Timestamp
  public private(set) var failuresInWindow: Int
  public private(set) var lockedUntil: Timestamp?
  public private(set) var lastUse: Timestamp

  /// A limiter without failed attempts.
  public init(at now: Timestamp) {
    self.init(failuresInARow: 0, windowStart: now, failuresInWindow: 0, lockedUntil: nil, lastUse: now)
  }

  /// One as a store kept it.
  public init(
    failuresInARow: Int, windowStart: Timestamp, failuresInWindow: Int, lockedUntil: Timestamp?, lastUse: Timestamp
  ) {
    self.failuresInARow = failuresInARow
    self.windowStart = windowStart
    self.failuresInWindow = failuresInWindow
    self.lockedUntil = lockedUntil
    self.lastUse = lastUse
  }

  /// Why no guess may be made now; `nil` if one may.
  public func refusal(at now: Timestamp) -> MFARefusal? {
    if failuresInARow >= Self.mostInARow { return .accountLocked(retryAfter: nil) }
    if let lockedUntil, now < lockedUntil { return .accountLocked(retryAfter: lockedUntil.since(now)) }
    let windowEnd = windowStart.advanced(by: Self.window)
    if failuresInWindow >= Self.mostInWindow, now < windowEnd { return .rateLimited(retryAfter: windowEnd.since(now)) }
    return nil
  }

  /// Counts a guess as wrong, before anyone has looked whether it is.
  public mutating func count(at now: Timestamp) {
    if now >= windowStart.advanced(by: Self.window) {
      windowStart = now
      failuresInWindow = 0
    }
    failuresInWindow += 1
    failuresInARow += 1
    lastUse = now
    if failuresInARow >= Self.firstLockAfter { lockedUntil = now.advanced(by: lockLength) }
  }

  /// Forgets the failures after a right guess.
  public mutating func release(at now: Timestamp) { self = AttemptLimiter(at: now) }

  /// This limiter with the times of failures at `now`, if a clock that ran ahead has written it; `nil` if none has.
  ///
  /// The failures stay. No lock and no window ends earlier than with a right clock, which would have written no later
  /// time than `now`.
  public func bounded(to now: Timestamp) -> AttemptLimiter? {
    guard max(lastUse, windowStart) > now.advanced(by: RecordMaintenance.clockDifference) else { return nil }
    return AttemptLimiter(
      failuresInARow: failuresInARow, windowStart: min(windowStart, now), failuresInWindow: failuresInWindow,
      lockedUntil: lockedUntil.map { min($0, now.advanced(by: lockLength)) }, lastUse: min(lastUse, now))
  }

  private var lockLength: Duration {
    let doublings = min(max(failuresInARow - Self.firstLockAfter, 0), 7)
    return min(Self.window * (1 << doublings), Self.longestLock)
  }
}
