public import AppAttest
public import AttestGate
public import ByteCoding

extension SQLiteStore: KeyCatalog {
  public func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage {
    try await reads.run { try CatalogStatements(db: $0).keys(selection, in: order, after: cursor, limit: limit) }
  }

  public func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> KeyPage {
    try await reads.run { try CatalogStatements(db: $0).keys(hashPrefix: prefix, limit: limit) }
  }

  public func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int {
    try await change { try CatalogStatements(db: $0).remove(keys, unusedSince: instant) }
  }

  public func latestKnownTime() async throws(StoreError) -> Timestamp? {
    try await reads.run { try NonceStatements(db: $0).youngest() }
  }

  public func entries(after cursor: KeyID?, limit: Int) async throws(StoreError) -> [KeyEntry] {
    try await reads.run { try CatalogStatements(db: $0).entries(after: cursor, limit: limit) }
  }

  public func count() async throws(StoreError) -> Int {
    try await reads.run { try CatalogStatements(db: $0).count() }
  }

  public func merge(_ entries: [KeyEntry]) async throws(StoreError) -> Int {
    try await change { try CatalogStatements(db: $0).merge(entries) }
  }

  public func findings(isThorough: Bool) async throws(StoreError) -> [StoreFinding] {
    guard isThorough else { return FileFindings.all(of: path) }
    return try await reads.run { [path] db in FileFindings.all(of: path) + (try TableFindings.all(in: db)) }
  }
}

extension SQLiteStore: ChangeFeed {
  public func changes(after position: ChangePosition?) async throws(StoreError) -> Changes {
    try await reads.run { try ChangeStatements(db: $0).changes(after: position) }
  }

  public func notices() -> AsyncStream<Void> { notifier.notices() }
}

extension SQLiteStore: ClusterMembership {
  /// Returns 1: one gate uses the file. A second gate on the same machine during a restart does not share limits with
  /// it.
  public func report(_ gate: GateNumber, life: Duration) async throws(StoreError) -> Int { 1 }
  public func leave(_ gate: GateNumber) async throws(StoreError) {}
  public func beginMaintenance() async throws(StoreError) -> Bool { true }
  public func endMaintenance() async throws(StoreError) {}
}

extension SQLiteStore: RiskStorage {
  public func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt] {
    try await reads.run { try RiskStatements(db: $0).dueReceipts(of: apps, at: now, limit: limit) }
  }

  public func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool {
    try await change { try RiskStatements(db: $0).settle(due, as: settlement) }
  }

  /// Returns `true`: one gate uses the file. If two use it during a graceful upgrade, `settle` accepts one result.
  public func beginExchange() async throws(StoreError) -> Bool { true }
  public func holdsExchange() async throws(StoreError) -> Bool { true }
  public func endExchange() async throws(StoreError) {}

  public func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally {
    try await reads.run { try RiskStatements(db: $0).tally(after: cursor, limit: limit) }
  }
}

extension SQLiteStore: AttestationKeyStorage {
  public func revokeKeys(
    attestedLike keyID: KeyID, above threshold: Int, at now: Timestamp
  ) async throws(StoreError) -> AttestationKeyRevocation {
    try await change { try AttestationKeyStatements(db: $0).revoke(attestedLike: keyID, above: threshold, at: now) }
  }
}

extension SQLiteStore: DecisionStorage {
  public func store(_ decisions: [KeyDecision], atMost limit: Int) async throws(StoreError) {
    try await history.run { try DecisionStatements(db: $0).store(decisions, atMost: limit) }
  }

  public func decisions(of keyID: KeyID, before position: Int64?, limit: Int) async throws(StoreError) -> DecisionPage {
    try await reads.run { try DecisionStatements(db: $0).page(of: keyID, before: position, limit: limit) }
  }

  public func forgetDecisions(_ retention: DecisionRetention, at now: Timestamp) async throws(StoreError) {
    let instant = now.advanced(by: .zero - retention.longest)
    // Reads first: without old decisions nothing is written.
    if try await reads.run({ try DecisionStatements(db: $0).hasOld(before: instant, at: now) }) {
      while !Task.isCancelled,
        try await history.run({ try DecisionStatements(db: $0).deleteOld(before: instant, at: now) })
      {}
    }
    var excess = try await reads.run { try DecisionStatements(db: $0).excess(over: retention.most) }
    while excess > 0, !Task.isCancelled {
      let count = min(excess, DecisionStatements.portion)
      try await history.run { try DecisionStatements(db: $0).deleteOldest(count) }
      excess -= count
    }
  }
}

extension SQLiteStore: GateStore {}
