/// Receives every statement that a store runs, with its placeholders and without values.
public struct StatementTrace: Sendable {
  let report: @Sendable (_ sql: String, _ duration: Duration) -> Void

  /// Creates the trace. `report` is called after each statement, with its duration.
  public init(_ report: @escaping @Sendable (_ sql: String, _ duration: Duration) -> Void) { self.report = report }
}

extension SQLSession {
  /// This session, or a wrapper that reports each statement to `trace`.
  func traced(by trace: StatementTrace?) -> any SQLSession {
    trace.map { TracedSession(session: self, trace: $0) } ?? self
  }
}

private struct TracedSession: SQLSession {
  let session: any SQLSession
  let trace: StatementTrace

  func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    try timed(sql) { try session.run(sql, arguments) }
  }

  func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
    try timed(sql) { try session.rows(sql, arguments) }
  }

  func enqueue(_ sql: String, _ arguments: [SQLValue]) throws {
    try timed(sql) { try session.enqueue(sql, arguments) }
  }

  func limitWaitForRows() throws { try session.limitWaitForRows() }
  func waitForHistory() throws { try session.waitForHistory() }

  private func timed<Value>(_ sql: String, _ body: () throws -> Value) rethrows -> Value {
    let start = ContinuousClock.now
    defer { trace.report(sql, ContinuousClock.now - start) }
    return try body()
  }
}
