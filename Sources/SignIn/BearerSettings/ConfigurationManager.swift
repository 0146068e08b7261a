internal import ByteCoding
public import OIDCClient

/// Loads, validates and selects providers of one configuration file.
///
/// Each call reads the file again, so that a change takes effect without a restart.
public struct ConfigurationManager: Sendable {
  /// The path of the file.
  public let path: String

  /// Creates a value for the file at `path`.
  public init(path: String) { self.path = path }

  /// The providers, in the order of the file.
  ///
  /// - Throws: `BearerSettingsErrors` with all faults.
  public func loadConfiguration() throws(BearerSettingsErrors) -> [IdentityProvider] {
    try BearerSettings(file: path).providers
  }

  /// Checks the value by itself; the file is not read.
  ///
  /// - Throws: `BearerSettingsErrors` with all `faults` of `provider`, without places.
  public func validateProvider(_ provider: IdentityProvider) throws(BearerSettingsErrors) {
    let faults = provider.faults.map { fault in
      BearerSettingsError(file: path, key: "providers.\(provider.id).\(fault.field)", reason: fault.reason)
    }
    guard faults.isEmpty else { throw BearerSettingsErrors(faults) }
  }

  /// The provider with this identifier.
  ///
  /// - Throws: `BearerSettingsErrors` if the file has a fault or no such provider.
  public func selectProvider(_ providerID: String) throws(BearerSettingsErrors) -> IdentityProvider {
    let providers = try loadConfiguration()
    if let provider = providers.first(where: { $0.id == providerID }) { return provider }
    let near = Suggestions.nearest(to: providerID, in: providers.map(\.id)).map { " (did you mean \($0)?)" } ?? ""
    throw BearerSettingsErrors([
      BearerSettingsError(file: path, key: "providers", reason: "no provider \(providerID)\(near)")
    ])
  }
}
