/// An operation on a PostgreSQL connection that failed.
package enum PostgresError: Error, Sendable, Hashable {
  /// The connection could not be opened or is lost. Statements sent before may have been executed.
  case connectionLost(reason: String)
  /// The server refused a statement.
  case refused(ServerError)
  /// A statement, or a text among its values, contains U+0000. libpq would send what is before it. Nothing was sent.
  case nullInText(statement: String)
}

extension PostgresError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .connectionLost(let reason): reason
    case .refused(let error): error.description
    case .nullInText(let statement): "a text for the database contains U+0000, in: \(statement)"
    }
  }
}

/// An error that the server reported for one statement.
package struct ServerError: Sendable, Hashable {
  /// The SQLSTATE, five characters (PostgreSQL's documentation, appendix A). It is empty if libpq itself found the
  /// fault.
  package let code: String
  /// The primary message, without detail and statement: those may quote nonces, key ids and personal data.
  package let message: String
}

extension ServerError: CustomStringConvertible {
  package var description: String { code.isEmpty ? message : "\(message) (\(code))" }
}
