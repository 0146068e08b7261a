internal import AttestGate
internal import ByteCoding
internal import GateService
internal import Locking
internal import Observability
internal import Settings

/// The number of keys with each risk metric, counted in the store from time to time.
///
/// A count reads all keys in parts, so that no call blocks the store for long. The pause after it is at least a minute,
/// and long enough that counting takes at most a hundredth of the time.
final class RiskFigures: Sendable {
  private struct State {
    var tally: RiskTally?
    var next: ContinuousClock.Instant?
    /// The apps whose keys are counted.
    var apps: Set<String> = []
  }

  private static let part = 5000
  private static let pause = Duration.seconds(60)

  private let store: any RiskStorage
  private let state = LockedValue(State())

  init(store: any RiskStorage, registry: MetricsRegistry) {
    self.store = store
    registry.values(
      "sallyport_app_attest_risk_keys",
      "Registered keys by risk metric, without revoked ones; counted at most once a minute.",
      labels: ["app", "metric"]
    ) { [state] in Self.samples(state.withLock { $0 }) }
  }

  /// The buckets of metrics, by their first one. The number of samples does not depend on devices.
  private static let buckets: [(least: Int, name: String)] = [
    (0, "0"), (1, "1"), (2, "2"), (3, "3"), (4, "4"), (5, "5-9"), (10, "10-19"), (20, "20-49"), (50, "50+"),
  ]

  private static func samples(_ state: State) -> [Sample] {
    guard let tally = state.tally else { return [] }
    return state.apps.sorted().flatMap { app in
      var counts = Dictionary(uniqueKeysWithValues: (buckets.map(\.name) + ["unknown"]).map { ($0, 0) })
      for (group, count) in tally.counts where group.app == app {
        let name = group.metric.map { metric in buckets.last { $0.least <= metric }?.name ?? "0" } ?? "unknown"
        counts[name, default: 0] += count
      }
      return (buckets.map(\.name) + ["unknown"]).map { Sample(Double(counts[$0] ?? 0), app, $0) }
    }
  }

  /// Counts again if it is time. Without apps nothing is read.
  func refresh(for apps: [RiskApp]) async throws(StoreError) {
    let names = Set(apps.map(\.name))
    let start = ContinuousClock.now
    let isDue = state.withLock { state in
      if state.apps != names { (state.apps, state.next) = (names, nil) }
      if names.isEmpty { state.tally = nil }
      return !names.isEmpty && state.next.map { $0 <= start } ?? true
    }
    guard isDue else { return }
    var tally = try await store.riskTally(after: nil, limit: Self.part)
    while let cursor = tally.next {
      if Task.isCancelled { return }
      tally.add(try await store.riskTally(after: cursor, limit: Self.part))
    }
    let end = ContinuousClock.now
    state.withLock { [tally] state in
      state.tally = tally
      state.next = end + max(Self.pause, start.duration(to: end) * 100)
    }
  }

  /// The figures for the status; `nil` if no app has a risk policy.
  func states(of apps: [RiskApp]) -> [GateStatus.Risk]? {
    let tally = state.withLock(\.tally)
    let states = apps.map { app in
      let counts = tally?.counts.filter { $0.key.app == app.name }
      return GateStatus.Risk(
        app: app.name, action: app.action.rawValue, threshold: app.threshold,
        assessed: counts?.filter { $0.key.metric != nil }.values.reduce(0, +),
        unknown: counts?.filter { $0.key.metric == nil }.values.reduce(0, +),
        above: app.threshold.flatMap { threshold in
          counts?.filter { $0.key.metric.map { $0 > threshold } ?? false }.values.reduce(0, +)
        })
    }
    return states.isEmpty ? nil : states
  }
}
