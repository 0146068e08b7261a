internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements for cluster membership: which gates are alive, and which one performs maintenance.
enum MembershipStatements {
  /// Records a heartbeat and returns the number of live gates. Uses the server's clock. Also deletes gates that are
  /// long gone.
  static func report(_ gate: GateNumber, life: Duration, on connection: PostgresConnection) throws(StoreError) -> Int {
    let seconds = Parameter("\(life.components.seconds) seconds")
    let results: [QueryResult]
    do throws(TransactionError) {
      results = try connection.transaction([
        Call(enter, Parameter(gate.bytes)), Call(forget, seconds), Call(count, seconds),
      ])
    } catch {
      throw error.storeError
    }
    return try StoreError.onMalformed("live_gates") { () throws(MalformedColumn) in
      try results.last?.rows.first?.read("gates") { Int($0 as Int64) } ?? 1
    }
  }

  static func leave(_ gate: GateNumber, on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionError) {
      _ = try connection.transaction([Call("DELETE FROM live_gates WHERE gate = $1", Parameter(gate.bytes))])
    } catch {
      throw error.storeError
    }
  }

  private static let enter = Statement(
    "enter_gate",
    """
    INSERT INTO live_gates (gate, seen_at) VALUES ($1, clock_timestamp())
    ON CONFLICT (gate) DO UPDATE SET seen_at = excluded.seen_at
    """)

  // Rows that another gate has locked are skipped, so no gate waits and no deadlock is possible.
  private static let forget = Statement(
    "forget_gates",
    """
    DELETE FROM live_gates WHERE gate IN (
      SELECT gate FROM live_gates WHERE seen_at < clock_timestamp() - CAST($1 AS TEXT)::interval * 10
      FOR UPDATE SKIP LOCKED
    )
    """)

  private static let count = Statement(
    "count_gates",
    "SELECT COUNT(*) AS gates FROM live_gates WHERE seen_at >= clock_timestamp() - CAST($1 AS TEXT)::interval")

  // MARK: Maintenance

  /// Returns the time of the server's clock.
  static func time(on connection: PostgresConnection) throws(StoreError) -> Timestamp? {
    let answer = try connection.ask(
      Call("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) AS now"))
    return try StoreError.onMalformed("clock_timestamp") { () throws(MalformedColumn) in
      try answer.rows.first?.read("now", Timestamp.init(milliseconds:))
    }
  }

  /// The id of the maintenance lock: an arbitrary number that is the same in every version, and the schema.
  private static let lock = "1935763571, hashtext(current_schema())"

  static func beginMaintenance(on connection: PostgresConnection) throws(StoreError) -> Bool {
    let answer = try connection.ask(
      Call(Statement("begin_maintenance", "SELECT pg_try_advisory_lock(\(lock)) AS taken")))
    return try StoreError.onMalformed("pg_locks") { () throws(MalformedColumn) in
      try answer.rows.first?.read("taken") { $0 as Bool } ?? false
    }
  }

  // If the lock was released with its connection, the server only warns that it is not held.
  static func endMaintenance(on connection: PostgresConnection) throws(StoreError) {
    _ = try connection.ask(Call(Statement("end_maintenance", "SELECT pg_advisory_unlock(\(lock))")))
  }
}
