public import AppAttest
public import AttestGate
public import ByteCoding

extension SQLiteStore: KeyCatalog {
  public func keys(
    _ selection: KeySelection, after cursor: KeyID?, limit: Int
  ) async throws(StoreError) -> KeyPage {
    try await reads.run { try CatalogStatements(db: $0).keys(selection, after: cursor, limit: limit) }
  }

  public func keys(hashPrefix prefix: String, limit: Int) async throws(StoreError) -> [KeyRecord] {
    try await reads.run { try CatalogStatements(db: $0).keys(hashPrefix: prefix, limit: limit) }
  }

  public func remove(_ keys: [KeyID], unusedSince instant: Timestamp?) async throws(StoreError) -> Int {
    try await change { try CatalogStatements(db: $0).remove(keys, unusedSince: instant) }
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
    try await reads.run { try CatalogStatements(db: $0).findings(isThorough: isThorough) }
  }
}

extension SQLiteStore: ChangeFeed {
  public func changes(after position: ChangePosition?) async throws(StoreError) -> Changes {
    try await reads.run { try ChangeStatements(db: $0).changes(after: position) }
  }

  public func notices() -> AsyncStream<Void> { bell.notices() }
}

extension SQLiteStore: GateStore {}
