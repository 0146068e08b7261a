/// The result of validating a configuration.
public struct ConfigurationDiagnostics: Sendable, Hashable {
  /// `nil` if there is any fault.
  public let settings: GateSettings?
  /// The faults in the order of the file, `.env`, environment variables and flags. Empty if `settings` is not `nil`.
  public let faults: [ConfigurationError]
  /// The warnings. They are present next to faults too; some follow from a fault and disappear with it.
  public let warnings: [Warning]

  /// Adds a fault for `key` that a later check found, and drops the settings.
  public func refusing(_ key: String, _ reason: String, hint: String?) -> ConfigurationDiagnostics {
    let origin = settings?.effective.first { $0.key == key }?.origin ?? .standard
    return ConfigurationDiagnostics(
      settings: nil, faults: faults + [ConfigurationError(origin, key, reason, hint: hint)], warnings: warnings)
  }
}
