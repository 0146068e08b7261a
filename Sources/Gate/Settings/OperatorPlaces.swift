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
  /// Loads only these settings. Faults elsewhere in the configuration are ignored, so that an operator can still
  /// manage keys.
  public func loadPlaces() throws(ConfigurationErrors) -> OperatorPlaces {
    try load(["store", "admin"]) { assembly in
      let admin = assembly.admin()
      return assembly.store().map { OperatorPlaces(store: $0, admin: admin) }
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
  private func load<Places>(
    _ sections: [String], _ read: (inout SettingsBuilder) -> Places?
  ) throws(ConfigurationErrors) -> Places {
    let (reading, builder) = readLayers()
    var assembly = builder
    let places = read(&assembly)
    let faults = assembly.faults(besides: reading.dotenvFaults, of: sections)
    guard let places, faults.isEmpty else { throw ConfigurationErrors(faults: faults) }
    return places
  }
}
