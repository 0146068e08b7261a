internal import AttestGate
internal import Databases

/// Why a transaction changed nothing, or may have changed something.
enum TransactionError: Error {
  /// The server refused a statement and rolled everything back.
  case refused(ServerError)
  /// Nothing was sent, or it can be told that nothing was done.
  case store(StoreError)

  var storeError: StoreError {
    switch self {
    case .refused(let refusal): StoreError(refusal)
    case .store(let error): error
    }
  }
}

extension PostgresConnection {
  // Stated each time, so that a default of the role or the database cannot change what the statements rely on.
  private static let begin = Call(Statement("begin", "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"))
  private static let commit = Call(Statement("commit", "COMMIT"))
  private static let rollback = Call(Statement("rollback", "ROLLBACK"))

  /// Does all of `calls` or none of them, in one round trip, and says that it is durable.
  ///
  /// An answer that does not come, or a commit that comes with a warning, is `.inDoubt`: the server may have committed.
  func transaction(_ calls: [Call]) throws(TransactionError) -> [QueryResult] {
    let exchange: PipelineResult
    do throws(StoreError) {
      exchange = try pipeline([Self.begin] + calls + [Self.commit])
    } catch {
      throw .store(error)
    }
    try Self.requireBegun(exchange.results)
    // A statement that was refused takes the COMMIT behind it along, however the connection ended.
    if let refusal = exchange.results.prefix(calls.count + 1).lazy.compactMap(\.error).first {
      if exchange.isComplete { rollBack() }
      throw .refused(refusal)
    }
    try confirm(exchange, of: calls.count + 2)
    return Array(exchange.results.dropFirst().prefix(calls.count))
  }

  /// Does what `body` does with the connection, or nothing of it. `body` may ask several times; it returns `nil` to
  /// take everything back.
  func transaction<Value>(_ body: (PostgresConnection) throws(StoreError) -> Value?) throws(StoreError) -> Value? {
    let opening = try pipeline([Self.begin])
    do throws(TransactionError) { try Self.requireBegun(opening.results) } catch { throw error.storeError }
    _ = try answers(opening, to: 1)
    let value: Value?
    do throws(StoreError) {
      value = try body(self)
    } catch {
      rollBack()
      throw error
    }
    guard let value else {
      rollBack()
      return nil
    }
    let end = try pipeline([Self.commit])
    do throws(TransactionError) { try confirm(end, of: 1) } catch { throw error.storeError }
    return value
  }

  /// A server in recovery, as a standby is, refuses a transaction that may write as a feature that it does not have
  /// (`0A000`), and a statement in any other transaction as read-only (`25006`).
  private static func requireBegun(_ results: [QueryResult]) throws(TransactionError) {
    if results.first?.error?.code == "0A000" { throw .store(.readOnly) }
  }

  private func confirm(_ exchange: PipelineResult, of count: Int) throws(TransactionError) {
    let last = exchange.results.last
    guard exchange.isComplete, exchange.results.count == count, let last, last.isSuccess else {
      let reason = last?.error?.message ?? fault ?? "no answer to COMMIT"
      giveUp(because: reason)
      throw .store(.inDoubt(reason: reason))
    }
    guard last.commandTag == "COMMIT" else { throw .store(.failed(reason: "COMMIT came to \(last.commandTag)")) }
    if let warning = exchange.warning { throw .store(.inDoubt(reason: warning)) }
  }

  private func rollBack() {
    guard let answer = try? pipeline([Self.rollback]), answer.isComplete, answer.results.last?.isSuccess == true else {
      giveUp(because: "ROLLBACK failed")
      return
    }
  }

  /// Sends `calls` together; an error of the connection becomes one of the store.
  private func pipeline(_ calls: [Call]) throws(StoreError) -> PipelineResult {
    do throws(PostgresError) { return try exchange(calls) } catch { throw StoreError(error) }
  }

  /// Asks for answers that change nothing, or stand in a transaction that is still to be committed.
  func ask(_ calls: [Call]) throws(StoreError) -> [QueryResult] {
    try answers(try pipeline(calls), to: calls.count)
  }

  private func answers(_ exchange: PipelineResult, to count: Int) throws(StoreError) -> [QueryResult] {
    if let refusal = exchange.results.lazy.compactMap(\.error).first { throw StoreError(refusal) }
    guard exchange.isComplete, exchange.results.count == count else {
      throw .unreachable(reason: fault ?? "the connection was lost")
    }
    return exchange.results
  }

  /// As `ask`, for one call.
  func ask(_ call: Call) throws(StoreError) -> QueryResult {
    guard let result = try ask([call]).first else { throw .failed(reason: "no answer") }
    return result
  }
}
