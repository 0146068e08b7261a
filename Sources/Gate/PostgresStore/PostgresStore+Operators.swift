public import AppAttest
public import AttestGate
public import ByteCoding

extension PostgresStore: KeyCatalog {
  public func keys(
    _ selection: KeySelection, in order: KeyOrder, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage {
    try await run { connection throws(StoreError) in
      try CatalogStatements.keys(selection, in: order, after: cursor, limit: limit, on: connection)
    }
  }

  public func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> KeyPage {
    try await run { connection throws(StoreError) in
      try CatalogStatements.keys(hashPrefix: prefix, limit: limit, on: connection)
    }
  }

  public func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int {
    try await run { connection throws(StoreError) in
      try CatalogStatements.remove(keys, unusedSince: instant, on: connection)
    }
  }

  public func latestKnownTime() async throws(StoreError) -> Timestamp? {
    try await run { connection throws(StoreError) in try MembershipStatements.time(on: connection) }
  }

  public func entries(after cursor: KeyID?, limit: Int) async throws(StoreError) -> [KeyEntry] {
    try await run { connection throws(StoreError) in
      try CatalogStatements.entries(after: cursor, limit: limit, on: connection)
    }
  }

  public func count() async throws(StoreError) -> Int {
    try await run { connection throws(StoreError) in try CatalogStatements.count(on: connection) }
  }

  public func merge(_ entries: [KeyEntry]) async throws(StoreError) -> Int {
    try await run { connection throws(StoreError) in try CatalogStatements.merge(entries, on: connection) }
  }

  public func findings(isThorough: Bool) async throws(StoreError) -> [StoreFinding] {
    try await run { connection throws(StoreError) in try Findings.all(isThorough: isThorough, on: connection) }
  }
}

extension PostgresStore: ChangeFeed {
  public func changes(after position: ChangePosition?) async throws(StoreError) -> Changes {
    try await runUrgently { connection throws(StoreError) in
      try ChangeStatements.changes(after: position, on: connection)
    }
  }

  public func notices() -> AsyncStream<Void> { listener.notices() }
}

extension PostgresStore: ClusterMembership {
  public func report(_ gate: GateNumber, life: Duration) async throws(StoreError) -> Int {
    try await runUrgently { connection throws(StoreError) in
      try MembershipStatements.report(gate, life: life, on: connection)
    }
  }

  public func leave(_ gate: GateNumber) async throws(StoreError) {
    try await runUrgently { connection throws(StoreError) in try MembershipStatements.leave(gate, on: connection) }
  }

  public func beginMaintenance() async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try MembershipStatements.beginMaintenance(on: connection) }
  }

  public func endMaintenance() async throws(StoreError) {
    try await run { connection throws(StoreError) in try MembershipStatements.endMaintenance(on: connection) }
  }
}

extension PostgresStore: RiskStorage {
  public func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt] {
    try await run { connection throws(StoreError) in
      try RiskStatements.dueReceipts(of: apps, at: now, limit: limit, on: connection)
    }
  }

  public func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try RiskStatements.settle(due, as: settlement, on: connection) }
  }

  public func beginExchange() async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try RiskStatements.beginExchange(on: connection) }
  }

  public func holdsExchange() async throws(StoreError) -> Bool {
    try await run { connection throws(StoreError) in try RiskStatements.holdsExchange(on: connection) }
  }

  public func endExchange() async throws(StoreError) {
    try await run { connection throws(StoreError) in try RiskStatements.endExchange(on: connection) }
  }

  public func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally {
    try await run { connection throws(StoreError) in
      try RiskStatements.tally(after: cursor, limit: limit, on: connection)
    }
  }
}

extension PostgresStore: AttestationKeyStorage {
  public func revokeKeys(
    attestedLike keyID: KeyID, above threshold: Int, at now: Timestamp
  ) async throws(StoreError) -> AttestationKeyRevocation {
    try await run { connection throws(StoreError) in
      try AttestationKeyStatements.revoke(attestedLike: keyID, above: threshold, at: now, on: connection)
    }
  }
}

extension PostgresStore: DecisionStorage {
  public func store(_ decisions: [KeyDecision], atMost limit: Int) async throws(StoreError) {
    try await runForHistory { connection throws(StoreError) in
      try DecisionStatements.store(decisions, atMost: limit, on: connection)
    }
  }

  public func decisions(of keyID: KeyID, before position: Int64?, limit: Int) async throws(StoreError) -> DecisionPage {
    try await run { connection throws(StoreError) in
      try DecisionStatements.page(of: keyID, before: position, limit: limit, on: connection)
    }
  }

  public func forgetDecisions(_ retention: DecisionRetention, at now: Timestamp) async throws(StoreError) {
    let instant = now.advanced(by: .zero - retention.longest)
    // Reads first: without old decisions nothing is written.
    if try await run({ connection throws(StoreError) in
      try DecisionStatements.hasOld(before: instant, at: now, on: connection)
    }) {
      while !Task.isCancelled,
        try await runForHistory({ connection throws(StoreError) in
          try DecisionStatements.deleteOld(before: instant, at: now, on: connection)
        })
      {}
    }
    var excess = try await run { connection throws(StoreError) in
      try DecisionStatements.excess(over: retention.most, on: connection)
    }
    while excess > 0, !Task.isCancelled {
      let count = min(excess, DecisionStatements.portion)
      try await runForHistory { connection throws(StoreError) in
        try DecisionStatements.deleteOldest(count, on: connection)
      }
      excess -= count
    }
  }
}

extension PostgresStore: GateStore {}
