/// Finds bursts in the gate's counts of refusals: a burst begins when one code has as many refusals within a minute as
/// the operator calls many, and ends when a minute has less than half of that.
public struct RefusalBursts: Sendable {
  /// How often `note` is called within a minute.
  private static let looks = 6

  private let threshold: UInt64
  /// The totals of the last minute, the oldest first; none of anything at the start.
  private var totals: [[String: UInt64]] = [[:]]
  /// The codes with a burst, and the total before it.
  private var bursts: [String: UInt64] = [:]

  /// - Parameter threshold: The refusals within a minute that are a burst, at least 1.
  public init(threshold: Int) { self.threshold = UInt64(max(1, threshold)) }

  /// Records the current totals and returns what began and what ended. Must be called every ten seconds.
  public mutating func note(_ counts: ActivityCounts) -> [GateEvent] {
    var now: [String: UInt64] = [:]
    for (reason, count) in counts.refusals { now[reason.code, default: 0] &+= count }
    let earlier = totals.first ?? [:]
    totals.append(now)
    if totals.count > Self.looks { totals.removeFirst() }
    var events: [GateEvent] = []
    for (code, total) in now.sorted(by: { $0.key < $1.key }) {
      let before = earlier[code] ?? 0
      let recent = total &- before
      if let base = bursts[code] {
        guard recent < (threshold + 1) / 2 else { continue }
        bursts[code] = nil
        events.append(.refusalsEnded(code: code, count: total &- base))
      } else if recent >= threshold {
        bursts[code] = before
        events.append(.refusalsBegan(code: code, count: recent))
      }
    }
    return events
  }
}
