import AppAttest
import AttestGate
import ByteCoding
import Locking
import GateRuntime

/// A store in memory that follows the contract of `RiskStorage`.
final class MemoryStorage: RiskStorage {
  struct Row: Sendable {
    let key: AttestedKey
    var receipt: [UInt8]
    var risk: KeyRisk?
    /// When the receipt is due; `nil` for never.
    var due: Timestamp?
    var failures = 0
    var isExchanged = false
  }

  private struct State {
    var rows: [Row] = []
    var places: [KeyID: Int] = [:]
    var isLeased = false
    /// Whether another gate has the lease.
    var isLost = false
    var mostLeases = 0
    var calls = 0
  }

  private let state = LockedValue(State())
  /// Called before each call with its number; throws what the store shall throw.
  private let fault: @Sendable (Int) -> StoreError?

  init(fault: @escaping @Sendable (Int) -> StoreError? = { _ in nil }) { self.fault = fault }

  func register(_ key: AttestedKey, _ receipt: [UInt8], at now: Timestamp) {
    state.withLock {
      $0.places[key.keyID] = $0.rows.count
      $0.rows.append(Row(key: key, receipt: receipt, due: now))
    }
  }

  func remove(_ keyID: KeyID) { state.withLock { $0.places[keyID] = nil } }

  var rows: [Row] { state.withLock(\.rows) }
  /// The receipts that are due at `now`.
  func count(dueAt now: Timestamp) -> Int { rows.count { $0.due.map { $0 <= now } == true } }
  /// The earliest time at which a receipt is due.
  var earliest: Timestamp? { state.withLock { $0.rows.compactMap(\.due).min() } }
  var isLeased: Bool { state.withLock(\.isLeased) }

  /// Ends the round of a gate that was killed, as a closed connection does. Another gate may begin one then.
  func loseConnection(to other: Bool = false) { state.withLock { ($0.isLeased, $0.isLost) = (other, other) } }

  private func count() throws(StoreError) {
    let number = state.withLock { state in
      state.calls += 1
      return state.calls
    }
    if let error = fault(number) { throw error }
  }

  func dueReceipts(of apps: [AppID], at now: Timestamp, limit: Int) async throws(StoreError) -> [DueReceipt] {
    try count()
    return state.withLock { state in
      let due = state.rows.indices.filter { index in
        let row = state.rows[index]
        return row.due.map { $0 <= now } == true && apps.contains(row.key.appID)
      }
      let order = due.sorted { first, second in
        let (one, two) = (state.rows[first], state.rows[second])
        if one.isExchanged != two.isExchanged { return !one.isExchanged }
        return one.isExchanged ? (one.due ?? now) < (two.due ?? now) : first > second
      }
      return order.prefix(limit).map {
        DueReceipt(key: state.rows[$0].key, receipt: state.rows[$0].receipt, failures: state.rows[$0].failures)
      }
    }
  }

  func settle(_ due: DueReceipt, as settlement: ReceiptSettlement) async throws(StoreError) -> Bool {
    try count()
    return state.withLock { state in
      guard let place = state.places[due.key.keyID], state.rows[place].receipt == due.receipt else { return false }
      if let receipt = settlement.receipt {
        state.rows[place].receipt = receipt
        state.rows[place].isExchanged = true
      }
      if let risk = settlement.risk { state.rows[place].risk = risk }
      state.rows[place].due = settlement.next
      state.rows[place].failures = settlement.failures
      return true
    }
  }

  func beginExchange() async throws(StoreError) -> Bool {
    try count()
    return state.withLock { state in
      defer { state.isLeased = true }
      return !state.isLeased
    }
  }

  func riskTally(after cursor: KeyID?, limit: Int) async throws(StoreError) -> RiskTally { RiskTally() }

  func holdsExchange() async throws(StoreError) -> Bool { state.withLock { $0.isLeased && !$0.isLost } }

  func endExchange() async throws(StoreError) { state.withLock { $0.isLeased = $0.isLost } }
}

/// A clock that a sleep moves. A long sleep moves it to the next time at which something is due.
final class SimulatedTime: ExchangeClock {
  private let elapsed = LockedValue(Duration.zero)
  private let start: Timestamp
  private let end: Duration
  private let skip: @Sendable () -> Timestamp?
  private let ended: @Sendable () -> Void

  /// - Parameters:
  ///   - end: When `ended` is called.
  ///   - skip: Returns the instant to which an idle sleep may lead at once.
  init(
    from start: Timestamp, until end: Duration, skip: @escaping @Sendable () -> Timestamp? = { nil },
    ended: @escaping @Sendable () -> Void
  ) {
    (self.start, self.end, self.skip, self.ended) = (start, end, skip, ended)
  }

  var uptime: Duration { elapsed.withLock { $0 } }
  var now: Timestamp { start.advanced(by: uptime) }

  func advance(by duration: Duration) { elapsed.withLock { $0 += duration } }

  func sleep(for duration: Duration) async {
    advance(by: duration)
    if duration > .seconds(10), let next = skip(), next > now { advance(by: min(next.since(now), end - uptime)) }
    if uptime >= end { ended() }
    await Task.yield()
  }
}

/// Notes what a worker reports.
final class NotingObserver: ExchangeObserver {
  struct Notes: Sendable {
    var codes: [String: Int] = [:]
    var changes: [ExchangePauses.Change] = []
    var stored = 0
    var storeFaults: [Bool] = []
  }

  private let state = LockedValue(Notes())
  var notes: Notes { state.withLock { $0 } }

  func exchanged(_ due: DueReceipt, _ judgement: Judgement, isStored: Bool) {
    state.withLock {
      $0.codes[judgement.code, default: 0] += 1
      if isStored { $0.stored += 1 }
    }
  }
  func changed(_ change: ExchangePauses.Change) { state.withLock { $0.changes.append(change) } }
  func backlog(_ isThere: Bool) {}
  func storeFailed(_ error: StoreError?) { state.withLock { $0.storeFaults.append(error != nil) } }
}
