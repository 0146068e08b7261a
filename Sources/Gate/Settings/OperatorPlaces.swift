public import ConfigurationEngine

/// The settings for operators' commands: the store and the admin server.
public struct OperatorPlaces: Sendable, Hashable {
  public var store: GateSettings.Store
  /// `nil`: the gate has no admin server.
  public var admin: GateSettings.Admin?

  public init(store: GateSettings.Store, admin: GateSettings.Admin? = nil) {
    self.store = store
    self.admin = admin
  }
}

/// The settings for the console over TLS.
public struct ConsolePlaces: Sendable, Hashable {
  public var console: ConsoleSettings
  public var admin: GateSettings.Admin
  public var log: GateSettings.Log
}

/// The settings for commands that work on the store.
public struct StorePlaces: Sendable, Hashable {
  public var store: GateSettings.Store
  /// The file with the challenge keys; `nil` if they are in the store, or the configuration is unknown.
  public var challengeKeysFile: String?
  /// How long a nonce is valid; `nil` if the configuration is unknown.
  public var challengeTTL: Duration?

  public init(store: GateSettings.Store) { self.store = store }
}

extension SettingsLoader {
  /// Loads only these settings. Faults elsewhere in the configuration are ignored, also of the console, so that an operator
  /// can still manage keys.
  public func loadPlaces() throws(ConfigurationErrors) -> OperatorPlaces {
    try load(["store", "admin"], besides: "admin.console") { assembly in
      let admin = assembly.admin()
      return assembly.store().map { OperatorPlaces(store: $0, admin: admin) }
    }
  }

  /// Loads only the settings of the admin server, for commands that need nothing else. Faults elsewhere in the
  /// configuration are ignored, also of the console.
  ///
  /// - Returns: `nil` if the gate has no admin server.
  public func loadAdmin() throws(ConfigurationErrors) -> GateSettings.Admin? {
    try load(["admin"], besides: "admin.console") { assembly -> GateSettings.Admin?? in .some(assembly.admin()) }
  }

  /// Loads only the settings for `console --serve`. Faults elsewhere in the configuration are ignored.
  ///
  /// - Returns: `nil` if the console is off.
  /// - Throws: `ConfigurationErrors` with the faults of these settings.
  public func loadConsole() throws(ConfigurationErrors) -> ConsolePlaces? {
    try load(["admin", "log"]) { assembly -> ConsolePlaces?? in
      let admin = assembly.admin()
      let console = assembly.console(hasAdminServer: admin != nil)
      guard let log = assembly.log() else { return nil }
      guard let console, let admin else { return .some(nil) }
      return ConsolePlaces(console: console, admin: admin, log: log)
    }
  }

  /// Loads only the settings of the store and the challenges. Faults elsewhere in the configuration are ignored.
  public func loadStorePlaces() throws(ConfigurationErrors) -> StorePlaces {
    try load(["store", Keys.challengeKeys.definition.pattern, Keys.challengeTTL.definition.pattern]) { assembly in
      guard var places = assembly.store().map(StorePlaces.init) else { return nil }
      places.challengeKeysFile = assembly.value(Keys.challengeKeys)
      places.challengeTTL = assembly.value(Keys.challengeTTL)
      return places
    }
  }

  /// Returns the result of `read`, if no key in `sections` is faulty.
  ///
  /// - Parameter section: A part of the sections whose faults are ignored.
  private func load<Places>(
    _ sections: [String], besides section: String? = nil, _ read: (inout SettingsBuilder) -> Places?
  ) throws(ConfigurationErrors) -> Places {
    let (reading, builder) = readLayers()
    var assembly = builder
    let places = read(&assembly)
    let faults = assembly.faults(besides: reading.dotenvFaults, of: sections).filter { fault in
      guard let key = fault.key, let section else { return true }
      return key != section && !key.hasPrefix(section + ".")
    }
    guard let places, faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    return places
  }
}
