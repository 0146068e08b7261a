internal import AppAttest
public import ByteCoding

/// Periodic maintenance of the store. It keeps the store from growing without bound and secrets from getting old.
///
/// It deletes spent nonces once they are too old for any node to accept them, rotates the challenge keys, removes old
/// decisions, and, if configured, keys that have not been used for a long time.
public struct StoreMaintenance: Sendable {
  /// The optional parts of a maintenance run.
  public struct Plan: Sendable, Hashable {
    /// The age at which the issuing challenge key is replaced; `nil` for never.
    public var rotation: Duration?
    /// The time after which an unused key is removed; `nil` for never. A clock that is set ahead while the gate runs
    /// shortens it by at most a day.
    public var longestUnused: Duration?
    /// Which decisions about keys are kept; `nil` leaves them alone. A clock that is set ahead shortens the time as above.
    public var decisions: DecisionRetention?

    public init(rotation: Duration? = nil, longestUnused: Duration? = nil, decisions: DecisionRetention? = nil) {
      self.rotation = rotation
      self.longestUnused = longestUnused
      self.decisions = decisions
    }
  }

  /// The results of a run that are worth a log line.
  public struct Report: Sendable, Hashable {
    public var ring: RingChange?
    public var removedKeys = 0

    public init(ring: RingChange? = nil, removedKeys: Int = 0) {
      self.ring = ring
      self.removedKeys = removedKeys
    }
  }

  public typealias Store = KeyRegistry & KeyCatalog & ClusterMembership & DecisionStorage

  private let store: any Store
  private let challenges: Challenges
  private let plan: Plan
  private let clock: WallClock
  private let latest: ClockUpperBound

  /// - Parameter latest: Limits what a clock that is set ahead can remove. Use one instance for the whole process.
  public init(
    store: any Store, challenges: Challenges, plan: Plan = Plan(),
    clock: WallClock = .system, latest: ClockUpperBound = ClockUpperBound()
  ) {
    self.store = store
    self.challenges = challenges
    self.plan = plan
    self.clock = clock
    self.latest = latest
  }

  /// When the challenge key was made, if it is to be rotated but a clock that was far ahead has made it, as far as this
  /// gate knows; `nil` otherwise. The key is not rotated before that time: an operator has to do it.
  public var keyOfClockAhead: Timestamp? { plan.rotation == nil ? nil : challenges.keyOfClockAhead }

  /// Performs one run; returns `nil` if another gate is already performing one. An error is not fatal: the next run
  /// continues.
  public func run() async throws(StoreError) -> Report? {
    guard try await store.beginMaintenance() else { return nil }
    do throws(StoreError) {
      let report = try await round()
      try await store.endMaintenance()
      return report
    } catch {
      try? await store.endMaintenance()
      throw error
    }
  }

  private func round() async throws(StoreError) -> Report {
    let now = clock.now()
    try await store.forgetNonces(issuedBy: now.advanced(by: .zero - challenges.greatestAge))
    var report = Report(ring: try await challenges.tend(at: now, every: plan.rotation))
    guard plan.longestUnused != nil || plan.decisions != nil else { return report }
    let latest = try await latest.bound(knownTo: store)
    if let decisions = plan.decisions { try await store.forgetDecisions(decisions, at: min(now, latest ?? now)) }
    if let longest = plan.longestUnused, let latest {
      report.removedKeys = try await removeKeys(unusedSince: min(now, latest).advanced(by: .zero - longest))
    }
    return report
  }

  /// Removes keys page by page, so that no admission waits long. A key that is used in the meantime stays, and so does one
  /// that cannot be read: an operator may have a backup of it.
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
