/// What a command of an operator needs of a gate's configuration: where the keys are, and where the gate is reached.
public struct OperatorPlaces: Sendable, Hashable {
  public var store: GateSettings.Store
  /// `nil`: the gate has no admin server.
  public var admin: GateSettings.Admin?
}

extension SettingsLoader {
  /// The places alone. Faults elsewhere in the configuration do not keep an operator from the keys.
  public func loadPlaces() throws(ConfigurationFaults) -> OperatorPlaces {
    let (entries, _, dotenvFaults) = readLayers()
    var assembly = Assembly(entries)
    let store = assembly.store()
    let admin = assembly.admin()
    let faults = (dotenvFaults + entries.faults + assembly.faults).filter { fault in
      // A fault without a key is one of the file itself: nothing in it can be believed.
      fault.key.map { key in ["store", "admin"].contains { key == $0 || key.hasPrefix($0 + ".") } } ?? true
    }
    guard let store, faults.isEmpty else { throw ConfigurationFaults(faults: faults) }
    return OperatorPlaces(store: store, admin: admin)
  }
}
