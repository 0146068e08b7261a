internal import AppAttest
public import ByteCoding

/// Periodic maintenance: the store does not grow without end, and no secret grows old.
///
/// Spent nonces are forgotten once they are too old for any node to accept; the challenge keys are replaced; keys
/// that have not been used for long are removed, if that is configured.
public struct StoreMaintenance: Sendable {
  /// What is done beyond forgetting nonces.
  public struct Plan: Sendable, Hashable {
    /// The age at which the key that issues nonces gives way to a new one; `nil` for never.
    public var rotation: Duration?
    /// How long a key may stay unused before it is removed; `nil` for ever. A clock that is set ahead while the gate
    /// works shortens it by a day at most.
    public var longestUnused: Duration?

    public init(rotation: Duration? = nil, longestUnused: Duration? = nil) {
      self.rotation = rotation
      self.longestUnused = longestUnused
    }
  }

  /// What a round did, where it is worth a line in the log.
  public struct Report: Sendable, Hashable {
    public var ring: RingChange?
    public var removedKeys = 0

    public init(ring: RingChange? = nil, removedKeys: Int = 0) {
      self.ring = ring
      self.removedKeys = removedKeys
    }
  }

  private let store: any KeyRegistry & KeyCatalog & ClusterMembership
  private let challenges: Challenges
  private let plan: Plan
  private let clock: WallClock
  private let latest: ClockUpperBound

  /// - Parameter latest: bounds what a clock that is set ahead has removed; the same for as long as the process lives.
  public init(
    store: any KeyRegistry & KeyCatalog & ClusterMembership, challenges: Challenges, plan: Plan = Plan(),
    clock: WallClock = .system, latest: ClockUpperBound = ClockUpperBound()
  ) {
    self.store = store
    self.challenges = challenges
    self.plan = plan
    self.clock = clock
    self.latest = latest
  }

  /// One round; `nil` if another gate is at it. A fault is not fatal: the next round does what this one left.
  public func run() async throws(StoreError) -> Report? {
    guard try await store.beginHousekeeping() else { return nil }
    do throws(StoreError) {
      let report = try await round()
      try await store.endHousekeeping()
      return report
    } catch {
      try? await store.endHousekeeping()
      throw error
    }
  }

  private func round() async throws(StoreError) -> Report {
    let now = clock.now()
    try await store.forgetNonces(issuedBy: now.advanced(by: .zero - challenges.greatestAge))
    var report = Report(ring: try await challenges.tend(at: now, every: plan.rotation))
    if let longest = plan.longestUnused, let latest = try await latest.bound(knownTo: store) {
      report.removedKeys = try await removeKeys(unusedSince: min(now, latest).advanced(by: .zero - longest))
    }
    return report
  }

  /// In pages, so that no admission waits for long. A key that is used meanwhile stays.
  private func removeKeys(unusedSince instant: Timestamp) async throws(StoreError) -> Int {
    var count = 0
    var cursor: KeyID?
    repeat {
      let page = try await store.keys(KeySelection(unusedSince: instant), after: cursor, limit: 200)
      if !page.records.isEmpty {
        count += try await store.remove(page.records.map(\.key.keyID), unusedSince: instant)
      }
      cursor = page.next
    } while cursor != nil && !Task.isCancelled
    return count
  }
}
