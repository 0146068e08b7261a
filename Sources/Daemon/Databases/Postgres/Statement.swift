/// A statement that a connection prepares at its first use and runs by name from then on.
package struct Statement: Sendable, Hashable {
  /// Its name on the server, which logs show; `nil` lets the connection choose one.
  package let name: String?
  package let sql: String

  package init(name: String? = nil, _ sql: String) {
    self.name = name
    self.sql = sql
  }

  var hasNull: Bool { sql.utf8.contains(0) || name?.utf8.contains(0) == true }
}

/// A statement with its values, one for each of `$1`, `$2` and so on.
package struct Call: Sendable {
  enum Form: Sendable {
    case prepared(Statement)
    case text(String)
  }

  let form: Form
  let parameters: [Parameter]

  package init(_ statement: Statement, _ parameters: Parameter...) { self.init(statement, parameters) }

  package init(_ statement: Statement, _ parameters: [Parameter]) {
    form = .prepared(statement)
    self.parameters = parameters
  }

  /// Creates a statement that is sent once and not prepared.
  package init(_ sql: String, _ parameters: Parameter...) {
    form = .text(sql)
    self.parameters = parameters
  }

  var sql: String {
    switch form {
    case .prepared(let statement): statement.sql
    case .text(let sql): sql
    }
  }

  /// Whether a text of it contains U+0000, at which libpq would cut it. The SQL of a statement is checked once, when it
  /// is prepared.
  var hasNull: Bool {
    if parameters.contains(where: \.hasNull) { return true }
    guard case .text(let sql) = form else { return false }
    return sql.utf8.contains(0)
  }
}
