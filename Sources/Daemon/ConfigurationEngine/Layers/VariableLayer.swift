/// The environment variables, merged over those of `.env`.
public struct Variables: Sendable {
  /// The value of a variable, and where it is set.
  public struct Variable: Sendable, Hashable {
    public let value: String
    public let origin: SettingSource
  }

  private let variables: [String: Variable]

  /// A variable of the environment hides that of `.env`, even if it is empty.
  init(environment: [String: String], dotenv: [String: DotEnv.Variable]) {
    let below = dotenv.map { name, variable in
      (name, Variable(value: variable.value, origin: .dotenv(line: variable.line, variable: name)))
    }
    let above = environment.map { name, value in (name, Variable(value: value, origin: .environment(name))) }
    variables = Dictionary(below + above, uniquingKeysWith: { _, upper in upper })
  }

  /// Returns the variable `name`, unless it is empty: container tools pass unset variables as empty ones.
  public func given(_ name: String) -> Variable? {
    variables[name].flatMap { $0.value.isEmpty ? nil : $0 }
  }

  /// The values of the variables of `table`. Unknown ones are faults, unless they are foreign.
  func entries(in workingDirectory: String, _ table: SettingsTable) -> Entries {
    var entries = Entries()
    for (name, variable) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(table.variablePrefix) {
      if variable.value.isEmpty, table.emptyVariables == .unset { continue }
      guard let path = table.path(of: name) else {
        if !table.isForeign(name) {
          entries.refuse(
            ConfigurationError(variable.origin, name, "expected the form \(table.variablePrefix)A__B"))
        }
        continue
      }
      if case .unknown = table.shape(of: path), table.isForeign(name) { continue }
      take(variable, as: path, into: &entries, in: workingDirectory, table)
    }
    return entries
  }

  private func take(
    _ variable: Variable, as path: SettingPath, into entries: inout Entries, in folder: String,
    _ table: SettingsTable
  ) {
    func refuse(_ reason: String, suggestion: String? = nil) {
      entries.refuse(ConfigurationError(variable.origin, path.text, reason, suggestion: suggestion))
      entries.markFaulty(path)
    }
    switch table.shape(of: path) {
    case .value(let key): entries.take(variable.value, for: path, key, from: variable.origin, in: folder)
    case .list:
      refuse("is a list: each element has its own variable", suggestion: table.variable(for: path[0]))
    case .section: refuse("is a section: each of its keys has its own variable")
    case .unknown:
      let meant = table.suggestion(for: path).flatMap(SettingPath.init(text:)).map(table.variable(for:))
      refuse("unknown key", suggestion: meant)
    }
  }

  /// Warnings for foreign variables that have one underscore in place of two. They have no effect.
  func lookalikes(_ table: SettingsTable) -> [Warning] {
    let names = Dictionary(
      table.keys.filter { !$0.pattern.contains("[]") }.map { key in
        (table.variable(of: key).replacing(SettingsTable.separator, with: "_"), table.variable(of: key))
      }, uniquingKeysWith: { first, _ in first })
    return variables.sorted { $0.key < $1.key }.compactMap { name, variable in
      guard let meant = names[name], meant != name, table.isForeign(name) else { return nil }
      return Warning(variable.origin, nil, "\(name) has no effect (did you mean \(meant))")
    }
  }
}
