public import AppAttest
public import ByteCoding

/// The storage of an exchange whose settlements also revoke keys.
///
/// If the policy of the app says so, a key with a metric above the threshold is revoked in the transaction that stores
/// the metric. One settlement of a receipt is stored, so that one gate of a fleet revokes the key and reports it. Every
/// gate hears of the revocation as of any other.
public struct RiskEnforcement: RiskStorage {
  /// A revocation because of a metric.
  public struct Revocation: Sendable, Hashable {
    public let key: KeyHash
    public let app: AppName
    public let metric: Int
    public let threshold: Int
  }

  private let storage: any RiskStorage & KeyRegistry
  private let policies: [AppID: RiskPolicy]
  private let clock: WallClock
  private let report: @Sendable (Revocation) -> Void

  /// - Parameters:
  ///   - report: Called after each revocation was stored. It must not wait.
  public init(
    _ storage: any RiskStorage & KeyRegistry, apps: [AppPolicy], clock: WallClock = .system,
    report: @escaping @Sendable (Revocation) -> Void
  ) {
    self.storage = storage
    policies = Dictionary(
      apps.compactMap { app in app.risk.map { (app.appID, $0) } }, uniquingKeysWith: { first, _ in first })
    self.clock = clock
    self.report = report
  }

  public func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool {
    var settlement = settlement
    if let metric = settlement.risk?.metric, settlement.next != nil, let policy = policies[due.key.appID] {
      settlement.revokedAt = settlement.revokedAt ?? policy.revocation(for: metric, at: clock.now())
    }
    guard settlement.revokedAt != nil else { return try await storage.settle(due, as: settlement) }
    // An operator may have revoked the key since its receipt was read.
    let isRevoked = try await storage.record(of: due.key.keyID)?.revokedAt != nil
    guard try await storage.settle(due, as: settlement) else { return false }
    if !isRevoked, let risk = settlement.risk, let threshold = policies[due.key.appID]?.threshold {
      report(
        Revocation(
          key: KeyHash(of: due.key.keyID), app: AppName(due.key.appID), metric: risk.metric, threshold: threshold))
    }
    return true
  }

  public func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt] {
    try await storage.dueReceipts(of: apps, at: now, limit: limit)
  }

  public func beginExchange() async throws(StoreError) -> Bool { try await storage.beginExchange() }
  public func holdsExchange() async throws(StoreError) -> Bool { try await storage.holdsExchange() }
  public func endExchange() async throws(StoreError) { try await storage.endExchange() }

  public func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally {
    try await storage.riskTally(after: cursor, limit: limit)
  }
}
