internal import ConfigurationEngine
internal import Commands

/// Adds defaults that no layer gave, or that depend on the environment.
enum DefaultResolution {
  /// The default upstream, for a configuration without routes.
  static let standardUpstream = "ws://127.0.0.1:8080"

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
    let standard = "sqlite://\(stateFolder(environment: environment, isRoot: isRoot))/state.db"
    entries.takeDefault(standard, for: .root["store"]["url"], Keys.store.definition)
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
