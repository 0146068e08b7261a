/// The result of validating a configuration.
public struct ConfigurationDiagnostics<Settings: Sendable & Hashable>: Sendable, Hashable {
  /// `nil` if there is any fault.
  public let settings: Settings?
  /// The faults in the order of the file, `.env`, environment variables and flags. Empty if `settings` is not `nil`.
  public let faults: [ConfigurationError]
  /// The warnings. They are present next to faults too; some follow from a fault and disappear with it.
  public let warnings: [Warning]
  /// Every key with its value and origin, in the order of the table. In place of a faulty value: that of a
  /// lower layer, or the default.
  public let effective: [EffectiveValue]

  public init(settings: Settings?, faults: [ConfigurationError], warnings: [Warning], effective: [EffectiveValue]) {
    self.settings = settings
    self.faults = faults
    self.warnings = warnings
    self.effective = effective
  }

  /// The origin of the value of `key`; `standard` for a default.
  public func origin(of key: String) -> SettingSource { effective.first { $0.key == key }?.origin ?? .standard }

  /// Adds a fault for `key` that a later check found, and drops the settings.
  public func refusing(_ key: String, _ reason: String, hint: String?) -> Self {
    Self(
      settings: nil, faults: faults + [ConfigurationError(origin(of: key), key, reason, hint: hint)],
      warnings: warnings, effective: effective)
  }
}
