internal import Commands

/// Adds values that were not given: credentials, and defaults that depend on the environment.
enum DefaultResolution {
  /// The default upstream, for a configuration without routes.
  static let standardUpstream = "ws://127.0.0.1:8080"

  /// Uses files of `$CREDENTIALS_DIRECTORY` for file settings that are not set.
  static func addCredentials(to entries: inout Entries, environment: [String: String]) {
    guard let folder = environment["CREDENTIALS_DIRECTORY"], folder.hasPrefix("/") else { return }
    for key in SettingsTable.keys {
      guard let credential = key.credential else { continue }
      let path = SettingPath(pattern: key.pattern, indices: [])
      let file = FilePath.absolute(credential, in: folder)
      if entries.values[path] == nil, !entries.isFaulty(path), FileContent.permissions(of: file) != nil {
        entries.take(file, for: path, key, from: .credential(file), in: folder)
      }
    }
  }

  /// Adds a route from `/` to a backend on this machine if no routes were given. An explicit empty list stays empty.
  static func addRoute(to entries: inout Entries) -> Warning? {
    let routes = SettingPath.root["routes"]
    guard entries.containers[routes] == nil, !entries.isFaulty(routes) else { return nil }
    entries.take(
      standardUpstream, for: routes[0]["upstream"], Keys.upstream.definition, from: .standard, in: "/")
    return Warning(.standard, "routes", "not set: / is forwarded to \(standardUpstream)")
  }

  /// Sets the store to `state.db` in systemd's `$STATE_DIRECTORY`, or in the default state folder of root or of the
  /// user.
  static func addStore(to entries: inout Entries, environment: [String: String], isRoot: Bool) {
    let path = SettingPath.root["store"]["url"]
    let standard = "sqlite://\(stateFolder(environment: environment, isRoot: isRoot))/state.db"
    entries.standardStore = standard
    guard entries.values[path] == nil, !entries.isFaulty(path) else { return }
    entries.take(standard, for: path, Keys.store.definition, from: .standard, in: "/")
  }

  private static func stateFolder(environment: [String: String], isRoot: Bool) -> String {
    func absolute(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
    // systemd separates several folders by colons.
    if let given = absolute("STATE_DIRECTORY")?.split(separator: ":").first { return String(given) }
    let installed = StandardPlaces.path("/var/lib/sallyport", in: environment)
    if isRoot { return installed }
    if let state = absolute("XDG_STATE_HOME") { return "\(state)/sallyport" }
    return absolute("HOME").map { "\($0)/.local/state/sallyport" } ?? installed
  }
}
