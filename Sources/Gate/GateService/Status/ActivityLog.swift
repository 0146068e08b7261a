internal import Locking

/// Keeps what a gate has counted within the last hour.
public final class ActivityLog: Sendable {
  /// How often `note` is meant to be called.
  public static let interval = Duration.seconds(10)

  private let metrics: GateMetrics
  private let start = ContinuousClock.now
  private let window = LockedValue(ActivityWindow())

  public init(of metrics: GateMetrics) { self.metrics = metrics }

  /// Notes what is counted now.
  public func note() {
    let (counts, now) = (metrics.activityCounts, ContinuousClock.now - start)
    window.withLock { $0.note(counts, at: now) }
  }

  /// What was decided lately, and why requests were refused.
  public func report() -> (activity: GateStatus.Activity, refusals: [GateStatus.RefusalCount]) {
    let (counts, now) = (metrics.activityCounts, ContinuousClock.now - start)
    let window = window.withLock(\.self)
    return (window.activity(counts, at: now), window.refusals(counts, at: now))
  }
}
