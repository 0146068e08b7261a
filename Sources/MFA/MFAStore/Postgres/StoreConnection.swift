internal import Postgres

extension PostgresError: UnderlyingStoreError {
  var plainReason: String { "\(self)" }
}

/// A connection in the dialect that the repositories share with SQLite: `?` for parameters, integers, texts and bytes.
///
/// Two threads must not use it at the same time. Calls block.
final class StoreConnection {
  private let connection: PostgresConnection

  /// How long a transaction may rest between two statements. It holds the lock of all writers: if its process was
  /// stopped in the middle, the server closes the connection.
  static let longestIdleness = Duration.seconds(5)

  /// Connects to `url`.
  ///
  /// - Parameter patience: how long the server may take for one statement. The server itself cancels the statement a
  ///   second earlier.
  /// - Throws: `ConnectionParameters.Malformed`, or `PostgresError`.
  init(url: String, patience: Duration = .seconds(10)) throws {
    let parameters = try ConnectionParameters(url: url, applicationName: "mfa-backend")
    connection = try PostgresConnection(parameters, patience: patience)
    let limit = max(1, patience.components.seconds - 1) * 1000
    let idleness = Self.longestIdleness.components.seconds * 1000
    try execute(
      "SET statement_timeout = \(limit)", "SET lock_timeout = \(limit)",
      "SET idle_in_transaction_session_timeout = \(idleness)")
  }

  /// Whether no further statement can succeed.
  var isBroken: Bool { !connection.isUsable() }

  /// Runs one statement, which is prepared at its first use.
  func run(_ sql: String, _ arguments: [SQLValue]) throws -> QueryResult {
    let call = Call(Statement(Self.numbered(sql)), arguments.map(\.parameter))
    guard let result = try answers(to: [call]).first else { throw PostgresError.connectionLost(reason: "no answer") }
    return result
  }

  /// Runs statements without parameters in one round trip.
  func execute(_ statements: String...) throws { _ = try answers(to: statements.map { Call($0) }) }

  private func answers(to calls: [Call]) throws -> [QueryResult] {
    let exchange = try connection.exchange(calls)
    if let error = exchange.results.lazy.compactMap(\.error).first {
      if error.endsConnection { connection.giveUp(because: error.message) }
      throw PostgresError.refused(error)
    }
    guard exchange.isComplete, exchange.results.count == calls.count else {
      throw PostgresError.connectionLost(reason: connection.fault ?? "the connection was lost")
    }
    return exchange.results
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
  /// statements (`0A000`): the next connection prepares them again.
  fileprivate var endsConnection: Bool { ["25006", "0A000"].contains(code) || code.hasPrefix("57P") }
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
