internal import ArgumentParser
internal import AttestGate
internal import GateRuntime
internal import Settings

/// The option that selects a gate's configuration.
struct ConfigurationOption: ParsableArguments {
  @Option(name: [.short, .customLong("config")], help: "The gate's configuration file (YAML).")
  var config: String?

  func places() throws(SallyportError) -> OperatorPlaces {
    do throws(ConfigurationErrors) {
      return try SettingsLoader(file: config).loadPlaces()
    } catch {
      let hasHint = error.faults.contains { $0.hint != nil }
      throw SallyportError(
        .configuration,
        lines: error.description
          + (hasHint ? "" : "\nhint: name the gate's configuration with -c FILE; keys commands can use --store URL"))
    }
  }
}

/// Selects the keys that a command works on: those of a gate, or those of a store.
struct StoreOptions: ParsableArguments {
  @OptionGroup var configuration: ConfigurationOption

  @Option(
    help: ArgumentHelp(
      "Use this store instead of the configuration: sqlite:///path or postgres://….", valueName: "url"))
  var store: String?

  func places() throws(SallyportError) -> OperatorPlaces {
    guard let store else { return try configuration.places() }
    // The configuration's password belongs to another store.
    return OperatorPlaces(store: try .named(store))
  }

  /// Calls `body` with an admin client of the running gate, or of the store if no gate runs.
  func withAdminClient(_ body: (AdminClient) async throws(SallyportError) -> Void) async throws(SallyportError) {
    let places = try places()
    if let client = try await AdminClient.gate(at: places.admin) {
      try await body(client)
    } else {
      try await OpenStore.with(places.store) { store throws(SallyportError) in try await body(AdminClient.over(store)) }
    }
  }
}
