/// The totals that a gate has counted since its start, at one time.
public struct ActivityCounts: Sendable, Hashable {
  /// The code and status of a refusal, as clients get them.
  public struct Reason: Sendable, Hashable {
    public let code: String
    public let status: String
  }

  public var admitted: UInt64 = 0
  public var registered: UInt64 = 0
  public var refusals: [Reason: UInt64] = [:]
  /// The open sessions at that time, which is no total.
  public var sessions = 0

  public init() {}

  var refused: UInt64 { refusals.values.reduce(0, &+) }

  /// Returns the difference to `earlier`.
  func since(_ earlier: ActivityCounts) -> GateStatus.Counts {
    GateStatus.Counts(
      admitted: admitted &- earlier.admitted, refused: refused &- earlier.refused,
      registered: registered &- earlier.registered)
  }
}

/// The counts of the last hour, recorded every few seconds, so that the status page shows rates without a script and
/// without Prometheus. Times are durations since the start.
struct ActivityWindow: Sendable {
  static let length = Duration.seconds(3600)
  private static let minute = Duration.seconds(60)

  /// Sorted by time. The first entry is the start, or at least an hour old.
  private var notes: [(at: Duration, counts: ActivityCounts)] = [(.zero, ActivityCounts())]

  var countOfNotes: Int { notes.count }

  /// Records `counts`. Times must not decrease.
  mutating func note(_ counts: ActivityCounts, at now: Duration) {
    notes.append((now, counts))
    // Keeps one entry that is older than the window, as the base of the hour's differences.
    let outside = notes.prefix { $0.at <= now - Self.length }.count
    if outside > 1 { notes.removeFirst(outside - 1) }
  }

  /// Returns the counts of `duration` before `now`, from the nearest entry before that.
  private func counts(_ duration: Duration, before now: Duration) -> ActivityCounts {
    notes.last { $0.at <= now - duration }?.counts ?? notes.first?.counts ?? ActivityCounts()
  }

  /// Returns the counts at the ends of the last minutes, up to 60, after those at the beginning of the first one.
  private func edges(_ counts: ActivityCounts, at now: Duration) -> [ActivityCounts] {
    (0...min(60, Int(now / Self.minute) + 1)).reversed().map { number in
      number == 0 ? counts : self.counts(Self.minute * number, before: now)
    }
  }

  /// Returns the last minutes, up to 60, the oldest first.
  func minutes(_ counts: ActivityCounts, at now: Duration) -> [MinuteDescription] {
    let edges = edges(counts, at: now)
    return zip(edges, edges.dropFirst()).map { before, after in
      var minute = MinuteDescription()
      minute.admitted = after.admitted &- before.admitted
      minute.registered = after.registered &- before.registered
      minute.sessions = after.sessions
      for (reason, total) in after.refusals where total > before.refusals[reason] ?? 0 {
        minute.refusals[reason.code, default: 0] &+= total &- (before.refusals[reason] ?? 0)
      }
      return minute
    }
  }

  func activity(_ counts: ActivityCounts, at now: Duration) -> GateStatus.Activity {
    let edges = edges(counts, at: now)
    return GateStatus.Activity(
      lastMinute: counts.since(self.counts(Self.minute, before: now)),
      lastHour: counts.since(self.counts(Self.length, before: now)),
      minutes: zip(edges, edges.dropFirst()).map { $1.since($0) })
  }

  /// Returns all reasons of refusals, sorted by their number in the last hour, the highest first.
  func refusals(_ counts: ActivityCounts, at now: Duration) -> [GateStatus.RefusalCount] {
    let earlier = self.counts(Self.length, before: now)
    return counts.refusals.map { reason, total in
      GateStatus.RefusalCount(
        code: reason.code, status: reason.status, lastHour: total &- (earlier.refusals[reason] ?? 0), total: total)
    }.sorted { ($1.lastHour, $1.total, $0.code) < ($0.lastHour, $0.total, $1.code) }
  }
}
