/// What a look at the configuration has shown.
public struct ConfigurationDiagnostics: Sendable, Hashable {
  /// `nil` if anything is wrong.
  public let settings: GateSettings?
  /// In the order of the file, then of `.env`, then of variables and flags; empty if there are settings.
  public let faults: [Fault]
  /// Told beside faults, too: some of them follow from a fault, and go with it.
  public let warnings: [Warning]

  /// The same diagnostics, with a fault that a later check found in the value of `key`.
  public func refusing(_ key: String, _ reason: String, hint: String?) -> ConfigurationDiagnostics {
    let origin = settings?.effective.first { $0.key == key }?.origin ?? .standard
    return ConfigurationDiagnostics(
      settings: nil, faults: faults + [Fault(origin, key, reason, hint: hint)], warnings: warnings)
  }
}
