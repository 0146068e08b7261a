internal import Databases
internal import MFADomain

extension PostgresError: UnderlyingStoreError {
  var plainReason: String { "\(self)" }
  // A lock that was not available in time, and a transaction that was chosen among several that wait for each other.
  var isContention: Bool {
    if case .refused(let error) = self { ["55P03", "40P01"].contains(error.code) } else { false }
  }
}

/// A connection in the dialect that the repositories share with SQLite: `?` for parameters, integers, texts and bytes.
///
/// Two threads must not use it at the same time. Calls block.
final class StoreConnection {
  private let connection: PostgresConnection
  /// The statements in the server's form, by their SQL.
  private var statements: [String: Statement] = [:]

  /// Statements that wait for a later one, to be sent with it.
  private var waiting: [Call] = []
  /// Why the transaction cannot be committed: a statement has failed, and others that were sent with it did not run.
  private var failure: MFAStoreError?
  /// Whether the commit of this transaction was sent.
  private(set) var hasSentCommit = false
  /// How long a statement may wait for a lock, in milliseconds.
  let longestWait: Int64

  /// How long a transaction may rest between two statements, if it holds nothing that others wait for.
  static let longestPause = Duration.seconds(5)
  /// The statements that are sent together at most. Together they are one message of the operating system, so a process
  /// that stops has sent all of them or none.
  private static let mostWaiting = 32

  /// Connects to `url`.
  ///
  /// - Parameters:
  ///   - password: as for the store.
  ///   - patience: how long the server may take for one statement. The server itself cancels the statement a second
  ///     earlier.
  ///   - longestPause: how long a transaction may rest between two statements: if its process was stopped in the
  ///     middle, the server closes the connection. It is three round trips at least: the server counts from its answer
  ///     to the next statement.
  /// - Throws: `ConnectionParameters.Malformed`, or `PostgresError`.
  init(
    url: String, password: DatabasePassword? = nil, patience: Duration = .seconds(10),
    longestPause: Duration = StoreConnection.longestPause
  ) throws {
    let parameters = try ConnectionParameters(
      url: url, password: Self.source(password), applicationName: "mfa-backend")
    connection = try PostgresConnection(parameters, patience: patience)
    longestWait = max(1, patience.components.seconds - 1) * 1000
    let start = ContinuousClock.now
    try execute("SET statement_timeout = \(longestWait)", "SET lock_timeout = \(longestWait)")
    let pause = Int64(max(longestPause, (ContinuousClock.now - start) * 3) / .milliseconds(1))
    try execute("SET idle_in_transaction_session_timeout = \(pause)")
  }

  private static func source(_ password: DatabasePassword?) -> ConnectionParameters.PasswordSource? {
    guard let password else { return nil }
    return { () throws(ConnectionParameters.Malformed) -> String in
      do {
        return try password()
      } catch {
        throw ConnectionParameters.Malformed(reason: MFAStoreError(error).reason)
      }
    }
  }

  /// Whether no further statement can succeed.
  var isBroken: Bool { !connection.isUsable() }

  /// Forgets the state of the transaction before.
  func begin() {
    waiting = []
    (failure, hasSentCommit) = (nil, false)
  }

  /// Runs one statement, which is prepared at its first use, and those that wait.
  func run(_ sql: String, _ arguments: [SQLValue]) throws -> QueryResult {
    try enqueue(sql, arguments, atMost: .max)
    return try flush()
  }

  /// Lets a statement wait for a later one.
  func enqueue(_ sql: String, _ arguments: [SQLValue]) throws {
    try enqueue(sql, arguments, atMost: Self.mostWaiting)
  }

  private func enqueue(_ sql: String, _ arguments: [SQLValue], atMost most: Int) throws {
    if let failure { throw failure }
    waiting.append(Call(statement(sql), arguments.map(\.parameter)))
    if waiting.count >= most { _ = try flush() }
  }

  /// Sends the statements that wait, and returns the result of the last one.
  private func flush() throws -> QueryResult {
    let calls = waiting
    waiting = []
    let results = try answers(to: calls)
    guard let result = results.last else { throw PostgresError.connectionLost(reason: "no answer") }
    return result
  }

  /// Commits the transaction.
  ///
  /// - Throws: also if the server has rolled it back.
  func commit() throws {
    if let failure { throw failure }
    guard connection.isUsable() else {
      throw PostgresError.connectionLost(reason: connection.fault ?? "the connection was lost")
    }
    hasSentCommit = true
    guard try run("COMMIT", []).commandTag == "COMMIT" else {
      throw MFAStoreError(reason: "the transaction was rolled back")
    }
  }

  /// Rolls the transaction back, whatever its state.
  func rollBack() throws {
    waiting = []
    try execute("ROLLBACK")
  }

  /// Runs statements without parameters in one round trip.
  func execute(_ statements: String...) throws { _ = try answers(to: statements.map { Call($0) }) }

  private func answers(to calls: [Call]) throws -> [QueryResult] {
    var succeeded = 0
    do {
      let exchange = try connection.exchange(calls)
      succeeded = exchange.results.prefix { $0.error == nil }.count
      if let error = exchange.results.dropFirst(succeeded).first?.error { throw PostgresError.refused(error) }
      guard exchange.isComplete, succeeded == calls.count else {
        throw PostgresError.connectionLost(reason: connection.fault ?? "the connection was lost")
      }
      failure = nil
      return exchange.results
    } catch {
      // Also a statement that was only to be prepared may have met an error that ends the connection.
      if case PostgresError.refused(let refusal) = error, refusal.endsConnection {
        connection.giveUp(because: refusal.message)
      }
      // The statements after the failed one did not run, so no savepoint is where its owner believes it to be.
      failure = succeeded < calls.count - 1 ? MFAStoreError(error) : nil
      throw error
    }
  }

  private func statement(_ sql: String) -> Statement {
    if let known = statements[sql] { return known }
    let statement = Statement(Self.numbered(sql))
    statements[sql] = statement
    return statement
  }

  /// Replaces `?` by `$1`, `$2` and so on. No statement of this target has a question mark in a literal.
  private static func numbered(_ sql: String) -> String {
    var count = 0
    return sql.reduce(into: "") { text, character in
      guard character == "?" else { return text.append(character) }
      count += 1
      text += "$\(count)"
    }
  }
}

extension ServerError {
  /// Whether to replace the connection. The server has become read-only (`25006`), as a demoted primary is, or shuts
  /// down (`57P01` to `57P05`): the next connection finds the new primary. Or the tables have changed under prepared
  /// statements (`0A000`), or the server has other prepared statements than this side believes (`26000`, `42P05`), as
  /// behind a pooler: the next connection prepares them again.
  fileprivate var endsConnection: Bool {
    ["25006", "0A000", "26000", "42P05"].contains(code) || code.hasPrefix("57P")
  }
}

extension QueryResult {
  /// The rows in the repositories' form.
  ///
  /// - Throws: `SQLRow.Unreadable` for a value of another type than bytes, text or integer.
  func sqlRows() throws -> [SQLRow] {
    let columns = self.columns
    let names = columns.map(\.name)
    return try rows.map { row in
      let values = try columns.enumerated().map { index, column in
        guard let bytes = row.bytes(at: index) else { return SQLValue.null }
        guard let value = SQLValue(bytes, as: column.type) else { throw SQLRow.Unreadable(column: column.name) }
        return value
      }
      return SQLRow(columns: names, values: values)
    }
  }
}

extension SQLValue {
  /// A value that the server sent in binary form.
  fileprivate init?(_ bytes: [UInt8], as type: UInt32) {
    if [UInt8].types.contains(type) {
      self = .blob(bytes)
    } else if String.types.contains(type), let text = String(binary: bytes) {
      self = .text(text)
    } else if Int64.types.contains(type), let integer = Int64(binary: bytes) {
      self = .integer(integer)
    } else {
      return nil
    }
  }

  /// Numbers and texts go in text form, so that the server gives them the type of their place.
  fileprivate var parameter: Parameter {
    switch self {
    case .null: .untyped(nil)
    case .integer(let integer): .untyped(String(integer))
    case .text(let text): .untyped(text)
    case .blob(let bytes): Parameter(bytes)
    }
  }
}
