/// A statement of this target. It is prepared once for each connection.
struct Statement: Sendable, Hashable {
  /// Its name on the server.
  let name: String
  let sql: String

  init(_ name: String, _ sql: String) {
    self.name = "sallyport_\(name)"
    self.sql = sql
  }
}

/// A statement with its values, one for each of `$1`, `$2` and so on.
struct Call: Sendable {
  enum Form: Sendable {
    case prepared(Statement)
    /// For what is said once.
    case text(String)
  }

  let form: Form
  let parameters: [Parameter]

  init(_ statement: Statement, _ parameters: Parameter...) {
    form = .prepared(statement)
    self.parameters = parameters
  }

  init(_ sql: String, _ parameters: Parameter...) {
    form = .text(sql)
    self.parameters = parameters
  }
}
