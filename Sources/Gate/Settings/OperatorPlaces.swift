/// What a command of an operator needs of a gate's configuration: where the keys are, and where the gate is reached.
public struct OperatorPlaces: Sendable, Hashable {
  public var store: GateSettings.Store
  /// `nil`: the gate has no admin server.
  public var admin: GateSettings.Admin?

  public init(store: GateSettings.Store, admin: GateSettings.Admin? = nil) {
    self.store = store
    self.admin = admin
  }
}

/// What a command that works on the store itself needs of a gate's configuration.
public struct StorePlaces: Sendable, Hashable {
  public var store: GateSettings.Store
  /// The file with the challenge keys; `nil` if the store has them, or if it is unknown.
  public var challengeKeysFile: String?
  /// The lifetime of a nonce; `nil` if it is unknown.
  public var challengeTTL: Duration?

  public init(store: GateSettings.Store) { self.store = store }
}

extension SettingsLoader {
  /// The places alone. Faults elsewhere in the configuration do not keep an operator from the keys.
  public func loadPlaces() throws(ConfigurationFaults) -> OperatorPlaces {
    try load(["store", "admin"]) { assembly in
      let admin = assembly.admin()
      return assembly.store().map { OperatorPlaces(store: $0, admin: admin) }
    }
  }

  /// The same of the store alone.
  public func loadStorePlaces() throws(ConfigurationFaults) -> StorePlaces {
    try load(["store", Keys.challengeKeys.definition.pattern, Keys.challengeTTL.definition.pattern]) { assembly in
      guard var places = assembly.store().map(StorePlaces.init) else { return nil }
      places.challengeKeysFile = assembly.value(Keys.challengeKeys)
      places.challengeTTL = assembly.value(Keys.challengeTTL)
      return places
    }
  }

  /// What `read` makes of the configuration, if nothing is wrong with the keys in `sections`.
  private func load<Places>(
    _ sections: [String], _ read: (inout SettingsBuilder) -> Places?
  ) throws(ConfigurationFaults) -> Places {
    let (entries, _, dotenvFaults) = readLayers()
    var assembly = SettingsBuilder(entries)
    let places = read(&assembly)
    let faults = (dotenvFaults + entries.faults + assembly.faults).filter { fault in
      // A fault without a key is one of the file itself: nothing in it can be believed.
      fault.key.map { key in sections.contains { key == $0 || key.hasPrefix($0 + ".") } } ?? true
    }
    guard let places, faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
    return places
  }
}
