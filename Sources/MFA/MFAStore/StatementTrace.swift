/// Told of every statement that a store runs, with its placeholders and without any value.
public struct StatementTrace: Sendable {
  let report: @Sendable (_ sql: String, _ duration: Duration) -> Void

  public init(_ report: @escaping @Sendable (_ sql: String, _ duration: Duration) -> Void) { self.report = report }
}

extension SQLSession {
  /// This session, or one that tells `trace` of each statement.
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

  private func timed<Value>(_ sql: String, _ body: () throws -> Value) rethrows -> Value {
    let start = ContinuousClock.now
    defer { trace.report(sql, ContinuousClock.now - start) }
    return try body()
  }
}
