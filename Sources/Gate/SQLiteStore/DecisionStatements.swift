internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Foundation
internal import GRDB

/// The statements on the table of decisions about keys.
struct DecisionStatements {
  let db: Database

  static let table = """
    CREATE TABLE key_decisions (
      number INTEGER NOT NULL PRIMARY KEY,
      key_id BLOB NOT NULL REFERENCES attested_keys (key_id) ON DELETE CASCADE,
      kind BIGINT NOT NULL,
      decided_at BIGINT NOT NULL,
      since BIGINT NOT NULL,
      times BIGINT NOT NULL,
      status BIGINT,
      code TEXT,
      step TEXT,
      detail TEXT,
      address TEXT NOT NULL,
      request_id TEXT NOT NULL
    );
    CREATE INDEX decisions_of_key ON key_decisions (key_id, kind, number);
    """

  // MARK: Writing

  func store(_ decisions: [KeyDecision], atMost limit: Int) throws {
    for decision in decisions {
      guard
        let key = try Data.fetchOne(
          db.cachedStatement(sql: "SELECT key_id FROM attested_keys WHERE key_hash = ?"), arguments: [decision.keyHash])
      else { continue }
      let earlier: (count: Int64, since: Int64?) =
        try decision.kind == .unverified ? takeEarlier(than: decision, of: key) : (0, nil)
      try insert(decision, of: key, after: earlier)
      try trim(decision.kind, of: key, to: limit)
    }
  }

  /// Removes the refusals that `decision` repeats, and returns their number and the time of the first one.
  private func takeEarlier(than decision: KeyDecision, of key: Data) throws -> (count: Int64, since: Int64?) {
    let condition = "key_id = ? AND kind = \(KeyDecision.Kind.unverified.rawValue) AND code IS ? AND step IS ?"
    let arguments: StatementArguments = [key, decision.code, decision.step]
    let rows = try Row.fetchAll(
      db.cachedStatement(sql: "SELECT times, since FROM key_decisions WHERE \(condition)"), arguments: arguments)
    guard !rows.isEmpty else { return (0, nil) }
    try db.cachedStatement(sql: "DELETE FROM key_decisions WHERE \(condition)").execute(arguments: arguments)
    var (count, since): (Int64, Int64?) = (0, nil)
    for row in rows {
      do throws(MalformedColumn) {
        let times = try row.read("times") { $0 as Int64 }
        let first = try row.read("since") { $0 as Int64 }
        count &+= times
        since = min(since ?? first, first)
      } catch {
        // A damaged row is lost, and no other decision is.
      }
    }
    return (count, since)
  }

  private func insert(_ decision: KeyDecision, of key: Data, after earlier: (count: Int64, since: Int64?)) throws {
    let since = decision.since.milliseconds
    try db.cachedStatement(
      sql: """
        INSERT INTO key_decisions (
          key_id, kind, decided_at, since, times, status, code, step, detail, address, request_id
        ) VALUES (:key, :kind, :at, :since, :times, :status, :code, :step, :detail, :address, :request)
        """
    ).execute(arguments: [
      "key": key, "kind": decision.kind.rawValue, "at": decision.at.milliseconds,
      "since": min(since, earlier.since ?? since), "times": decision.count &+ earlier.count,
      "status": decision.status, "code": decision.code, "step": decision.step, "detail": decision.detail,
      "address": decision.address, "request": decision.requestID,
    ])
  }

  private func trim(_ kind: KeyDecision.Kind, of key: Data, to limit: Int) throws {
    try db.cachedStatement(
      sql: """
        DELETE FROM key_decisions WHERE key_id = :key AND kind = :kind AND number <= (
          SELECT number FROM key_decisions WHERE key_id = :key AND kind = :kind
          ORDER BY number DESC LIMIT 1 OFFSET :limit
        )
        """
    ).execute(arguments: ["key": key, "kind": kind.rawValue, "limit": limit])
  }

  // MARK: Reading

  /// Reads each kind by the index, and then the newest of all.
  static let page =
    "SELECT * FROM ("
    + KeyDecision.Kind.allCases.map { kind in
      """
      SELECT * FROM (
        SELECT * FROM key_decisions WHERE key_id = :key AND kind = \(kind.rawValue) AND number < :before
        ORDER BY number DESC LIMIT :limit
      )
      """
    }.joined(separator: " UNION ALL ") + ") ORDER BY number DESC LIMIT :limit"

  func page(of keyID: KeyID, before position: Int64?, limit: Int) throws -> DecisionPage {
    let rows = try Row.fetchAll(
      db.cachedStatement(sql: Self.page),
      arguments: ["key": Data(keyID.bytes), "before": position ?? .max, "limit": limit + 1])
    let hash = KeyHash(of: keyID).text
    do throws(MalformedColumn) {
      var decisions: [KeyDecision] = []
      var last: Int64?
      for row in rows.prefix(limit) {
        last = try row.read("number") { $0 as Int64 }
        // A damaged row is left out: no guarantee depends on it.
        if let decision = try? KeyDecision(row: row, keyHash: hash) { decisions.append(decision) }
      }
      return DecisionPage(decisions, next: rows.count > limit ? last : nil)
    } catch { throw StoreError.corrupt(reason: "key_decisions.\(error.name) is malformed") }
  }

  // MARK: Removal

  /// The number of rows that are removed at once: admissions wait for the transaction.
  static let portion = 500

  /// Whether a row is old, or damaged so that it would never be.
  private static let isOld = "(decided_at < :instant OR typeof(decided_at) <> 'integer')"

  /// The rows in their order, without those of a clock that was ahead: the rows after them may be older.
  private static let ordered =
    "key_decisions WHERE decided_at <= :now OR typeof(decided_at) <> 'integer' ORDER BY number"

  /// Deletes the rows before `instant` among the oldest ones; returns `false` if none of them is left.
  func deleteOld(before instant: Timestamp, at now: Timestamp) throws -> Bool {
    try db.cachedStatement(
      sql: """
        DELETE FROM key_decisions
        WHERE number IN (SELECT number FROM \(Self.ordered) LIMIT \(Self.portion)) AND \(Self.isOld)
        """
    ).execute(arguments: ["instant": instant.milliseconds, "now": now.milliseconds])
    return db.changesCount == Self.portion
  }

  /// Whether the oldest row is before `instant`.
  func hasOld(before instant: Timestamp, at now: Timestamp) throws -> Bool {
    try Bool.fetchOne(
      db, sql: "SELECT \(Self.isOld) FROM \(Self.ordered) LIMIT 1",
      arguments: ["instant": instant.milliseconds, "now": now.milliseconds]) ?? false
  }

  /// Returns the number of rows above `most`. Counts them only if there may be some.
  func excess(over most: Int) throws -> Int {
    let span = try Int64.fetchOne(db, sql: "SELECT MAX(number) - MIN(number) + 1 FROM key_decisions") ?? 0
    guard span > Int64(most) else { return 0 }
    return max(0, (try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM key_decisions") ?? 0) - most)
  }

  func deleteOldest(_ count: Int) throws {
    try db.cachedStatement(
      sql: "DELETE FROM key_decisions WHERE number IN (SELECT number FROM key_decisions ORDER BY number LIMIT ?)"
    ).execute(arguments: [count])
  }
}

extension KeyDecision {
  fileprivate init(row: Row, keyHash: String) throws(MalformedColumn) {
    self.init(
      keyHash: keyHash, kind: try row.read("kind", Kind.init(rawValue:)),
      at: try row.read("decided_at", Timestamp.init(milliseconds:)),
      status: try row.readIfPresent("status") { Int(exactly: $0 as Int64) },
      code: try row.readIfPresent("code") { $0 }, step: try row.readIfPresent("step") { $0 },
      detail: try row.readIfPresent("detail") { $0 }, address: try row.read("address") { $0 },
      requestID: try row.read("request_id") { $0 }, count: try row.read("times") { $0 },
      since: try row.read("since", Timestamp.init(milliseconds:)))
  }
}
