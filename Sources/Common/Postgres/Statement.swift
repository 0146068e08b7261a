/// A statement that a connection prepares at its first use and runs by name from then on.
package struct Statement: Sendable, Hashable {
  /// Its name on the server, which logs show; `nil` lets the connection choose one.
  package let name: String?
  package let sql: String

  package init(name: String? = nil, _ sql: String) {
    self.name = name
    self.sql = sql
  }
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
}
