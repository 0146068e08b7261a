/// The environment variables, merged over those of `.env`.
struct Variables: Sendable {
  struct Variable: Sendable, Hashable {
    let value: String
    let origin: SettingSource
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
  func given(_ name: String) -> Variable? {
    variables[name].flatMap { $0.value.isEmpty ? nil : $0 }
  }

  /// The values of the variables `SALLYPORT_A__B`.
  ///
  /// Unknown names without `__` are ignored: the tools define some (`SALLYPORT_AUTHORITY`), and container networks
  /// define others for a service named sallyport (`SALLYPORT_PORT`).
  func entries(in workingDirectory: String) -> Entries {
    var entries = Entries()
    for (name, variable) in variables.sorted(by: { $0.key < $1.key }) where name.hasPrefix(EnvironmentName.prefix) {
      let isOurs = name.dropFirst(EnvironmentName.prefix.count).contains(EnvironmentName.separator)
      guard let path = EnvironmentName.path(of: name) else {
        if isOurs { entries.refuse(ConfigurationError(variable.origin, name, "expected the form SALLYPORT_A__B")) }
        continue
      }
      if case .unknown = SettingsTable.shape(of: path), !isOurs { continue }
      take(variable, as: path, named: name, into: &entries, in: workingDirectory)
    }
    return entries
  }

  private func take(
    _ variable: Variable, as path: SettingPath, named name: String, into entries: inout Entries, in folder: String
  ) {
    func refuse(_ reason: String, suggestion: String? = nil) {
      entries.refuse(ConfigurationError(variable.origin, path.text, reason, suggestion: suggestion))
      entries.markFaulty(path)
    }
    switch SettingsTable.shape(of: path) {
    case .value(let key): entries.take(variable.value, for: path, key, from: variable.origin, in: folder)
    case .list:
      refuse("is a list: each element has its own variable", suggestion: EnvironmentName.variable(for: path[0]))
    case .section: refuse("is a section: each of its keys has its own variable")
    case .unknown:
      let meant = SettingsTable.suggestion(for: path).flatMap(SettingPath.init(text:)).map(
        EnvironmentName.variable(for:))
      refuse("unknown key", suggestion: meant)
    }
  }

  /// Warnings for variables with one underscore in place of two. They have no effect.
  func lookalikes() -> [Warning] {
    let names = Dictionary(
      SettingsTable.keys.filter { !$0.pattern.contains("[]") }.map { key in
        (key.environmentVariable.replacing(EnvironmentName.separator, with: "_"), key.environmentVariable)
      }, uniquingKeysWith: { first, _ in first })
    return variables.sorted { $0.key < $1.key }.compactMap { name, variable in
      guard let meant = names[name], meant != name else { return nil }
      return Warning(variable.origin, nil, "\(name) has no effect (did you mean \(meant))")
    }
  }
}
