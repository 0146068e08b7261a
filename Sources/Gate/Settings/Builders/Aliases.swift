internal import ConfigurationEngine

/// The environment variables of the guide for app developers. Each sets a key; if the key is set as well, both must
/// agree.
struct Aliases {
  private let variables: Variables
  private let workingDirectory: String
  private var entries: Entries
  private var warnings: [Warning] = []

  /// Returns `entries` with the values of the guide's variables.
  static func resolve(
    _ variables: Variables, in workingDirectory: String, over entries: Entries
  ) -> (entries: Entries, warnings: [Warning]) {
    var aliases = Aliases(variables: variables, workingDirectory: workingDirectory, entries: entries)
    aliases.takeEnforcement()
    aliases.takeClientCA()
    aliases.takeApp()
    return (aliases.entries, aliases.warnings)
  }

  private init(variables: Variables, workingDirectory: String, entries: Entries) {
    self.variables = variables
    self.workingDirectory = workingDirectory
    self.entries = entries
  }

  private mutating func takeEnforcement() {
    let name = "REQUIRE_APP_AUTH"
    guard let variable = variables.given(name) else { return }
    let words = ["true": "enforce", "false": "off"]
    guard let word = words[variable.value] else {
      let lowered = variable.value.lowercased()
      return refuse(
        variable, name, "\(InvalidSetting.quoted(variable.value)) is neither true nor false",
        suggestion: words[lowered] == nil ? nil : lowered)
    }
    take(word, of: variable, named: name, for: .root["app_attest"]["enforcement"], Keys.enforcement.definition)
  }

  private mutating func takeClientCA() {
    let name = "MTLS_CLIENT_CA_PATH"
    guard let variable = variables.given(name) else { return }
    take(
      variable.value, of: variable, named: name, for: .root["debug_mtls"]["client_ca_file"], Keys.clientCA.definition)
  }

  /// Sets the key to `text`, unless it already has another value.
  private mutating func take(
    _ text: String, of variable: Variables.Variable, named name: String, for path: SettingPath, _ key: KeyDefinition
  ) {
    if let problem = key.problem(text) {
      return refuse(variable, name, problem.reason, suggestion: problem.suggestion)
    }
    let meant = key.placed(text, in: workingDirectory)
    if let given = entries.values[path] {
      guard given.text != meant else { return }
      return refuse(variable, name, disagreement(meant, path, given))
    }
    if !entries.isFaulty(path) {
      entries.take(text, for: path, key, from: variable.origin, in: workingDirectory)
    }
  }

  private func disagreement(_ meant: String, _ path: SettingPath, _ given: Entry) -> String {
    "sets \(path.text) to \(meant), but \(given.origin) sets \(given.text)"
  }

  /// `APPATTEST_TEAM_ID` and `APPATTEST_BUNDLE_ID` define one app in environment production.
  private mutating func takeApp() {
    let team = appVariable("APPATTEST_TEAM_ID", Keys.teamID.definition)
    let bundle = appVariable("APPATTEST_BUNDLE_ID", Keys.bundleID.definition)
    let apps = SettingPath.root["app_attest"]["apps"]
    guard entries.containers[apps] == nil else { return compare(team: team, bundle: bundle) }
    switch (team, bundle) {
    case (let team?, let bundle?):
      let app = apps[0]
      entries.take(team.value, for: app["team_id"], Keys.teamID.definition, from: team.origin, in: "/")
      entries.take(bundle.value, for: app["bundle_id"], Keys.bundleID.definition, from: bundle.origin, in: "/")
    case (let team?, nil):
      warnings.append(Warning(team.origin, "APPATTEST_TEAM_ID", "has no effect: APPATTEST_BUNDLE_ID is not set"))
    case (nil, let bundle?):
      warnings.append(Warning(bundle.origin, "APPATTEST_BUNDLE_ID", "has no effect: APPATTEST_TEAM_ID is not set"))
    case (nil, nil): break
    }
  }

  private mutating func appVariable(_ name: String, _ key: KeyDefinition) -> Variables.Variable? {
    guard let variable = variables.given(name) else { return nil }
    guard let problem = key.problem(variable.value) else { return variable }
    refuse(variable, name, problem.reason, suggestion: problem.suggestion)
    return nil
  }

  /// If apps are configured by keys, one of them must be the app of the guide's variables.
  private mutating func compare(team: Variables.Variable?, bundle: Variables.Variable?) {
    guard let named = team ?? bundle else { return }
    let apps = SettingPath.root["app_attest"]["apps"]
    let agrees = entries.indices(of: apps).contains { index in
      let app = apps[index]
      let environments = entries.indices(of: app["environments"]).map { entries.values[app["environments"][$0]]?.text }
      return (team == nil || entries.values[app["team_id"]]?.text == team?.value)
        && (bundle == nil || entries.values[app["bundle_id"]]?.text == bundle?.value)
        && (environments.isEmpty || environments.contains("production"))
    }
    guard !agrees else { return }
    let app = "\(team?.value ?? "*").\(bundle?.value ?? "*")"
    let place = entries.containers[apps].map { " (\($0))" } ?? ""
    refuse(
      named, team == nil ? "APPATTEST_BUNDLE_ID" : "APPATTEST_TEAM_ID",
      "names the app \(app) in environment production, but app_attest.apps does not list it\(place)")
  }

  private mutating func refuse(
    _ variable: Variables.Variable, _ name: String, _ reason: String, suggestion: String? = nil
  ) {
    // The origin already names an environment variable; a variable in a file needs the name as well.
    let key = variable.origin == .environment(name) ? nil : name
    entries.refuse(ConfigurationError(variable.origin, key, reason, suggestion: suggestion))
  }
}
