internal import AttestGate
internal import Databases

extension Statement {
  /// A statement of this target, with a name that the server's logs show.
  init(_ name: String, _ sql: String) { self.init(name: "sallyport_\(name)", sql) }
}

extension PostgresConnection {
  /// Connects.
  ///
  /// - Throws: `.unreachable` if the server does not answer or refuses the connection.
  static func open(_ parameters: ConnectionParameters, patience: Duration) throws(StoreError) -> PostgresConnection {
    do throws(PostgresError) {
      return try PostgresConnection(parameters, patience: patience)
    } catch {
      throw StoreError(error)
    }
  }
}

extension StoreError {
  /// What an error of the connection means to the gate.
  init(_ error: PostgresError) {
    switch error {
    case .connectionLost(let reason): self = .unreachable(reason: reason)
    case .refused(let error): self.init(error)
    case .nullInText: self = .failed(reason: error.description)
    }
  }

  /// Returns what `body` reads from rows of `table`; a malformed column is `.corrupt`.
  static func onMalformed<Value>(
    _ table: String, _ body: () throws(MalformedColumn) -> Value
  ) throws(StoreError) -> Value {
    do throws(MalformedColumn) {
      return try body()
    } catch {
      throw .corrupt(reason: "\(table).\(error.name) is malformed")
    }
  }

  /// What an error of the server means to the gate. The transaction that met it did nothing.
  init(_ error: ServerError) {
    let reason = error.code.isEmpty ? error.message : "\(error.code): \(error.message)"
    self =
      switch error.code {
      // read_only_sql_transaction: the server is a standby now, or was made read-only.
      case "25006": .readOnly
      case "53100": .full
      // lock_not_available, query_canceled: lock_timeout and statement_timeout.
      case "55P03", "57014": .locked
      // idle_in_transaction_session_timeout: the server has closed the connection.
      case "25P03": .unreachable(reason: reason)
      case let code where code.hasPrefix("08") || code.hasPrefix("57P") || code.hasPrefix("53") || code.hasPrefix("28"):
        .unreachable(reason: reason)
      // data_corrupted, index_corrupted.
      case "XX001", "XX002": .corrupt(reason: reason)
      default: .failed(reason: reason)
      }
  }
}

extension ServerError {
  /// Whether the fault lies with one statement of several (its data, or a conflict with others), so that the rest may
  /// be tried again without it: SQLSTATE classes 22, 23 and 40.
  var isOfOneCall: Bool { ["22", "23", "40"].contains(code.prefix(2)) }
}
