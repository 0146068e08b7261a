internal import Locking

/// Keeps the gate's counts of the last hour.
public final class ActivityLog: Sendable {
  /// The interval at which `note` must be called.
  public static let interval = Duration.seconds(10)

  private let metrics: GateMetrics
  private let sessions: LiveSessions
  private let start = ContinuousClock.now
  private let window = LockedValue(ActivityWindow())

  public init(of metrics: GateMetrics, sessions: LiveSessions) {
    self.metrics = metrics
    self.sessions = sessions
  }

  private var counts: ActivityCounts {
    var counts = metrics.activityCounts
    counts.sessions = sessions.count
    return counts
  }

  /// Records the current counts.
  public func note() {
    let (counts, now) = (counts, ContinuousClock.now - start)
    window.withLock { $0.note(counts, at: now) }
  }

  /// Returns the counts of the last minutes, up to 60, the oldest first.
  func minutes() -> [MinuteDescription] {
    let (counts, now) = (counts, ContinuousClock.now - start)
    return window.withLock(\.self).minutes(counts, at: now)
  }

  /// Returns the recent activity and the reasons of refusals.
  public func report() -> (activity: GateStatus.Activity, refusals: [GateStatus.RefusalCount]) {
    let (counts, now) = (counts, ContinuousClock.now - start)
    let window = window.withLock(\.self)
    return (window.activity(counts, at: now), window.refusals(counts, at: now))
  }
}
