/// Knows the identity providers of an app.
public struct ConfigurationManager: ConfigurationManagerProtocol, Sendable {
  private let load: @Sendable () throws -> [IdentityProvider]

  /// Asks `load` each time, so that changed settings are seen.
  public init(load: @escaping @Sendable () throws -> [IdentityProvider]) { self.load = load }

  /// All providers.
  ///
  /// - Throws: `AuthenticationError.configurationError` with the first fault of the first provider that has one, or for two
  ///   providers of one name.
  public func loadConfiguration() throws -> [IdentityProvider] {
    let providers = try load()
    for (index, provider) in providers.enumerated() {
      try validateProvider(provider)
      if providers[..<index].contains(where: { $0.id == provider.id }) {
        throw AuthenticationError.configurationError("two providers are called \(provider.id)")
      }
    }
    return providers
  }

  /// - Throws: `AuthenticationError.configurationError` with the first fault.
  public func validateProvider(_ provider: IdentityProvider) throws {
    if let fault = provider.faults.first { throw AuthenticationError.configurationError("\(provider.id): \(fault)") }
  }

  /// - Throws: `AuthenticationError.configurationError` if there is none, or it has a fault.
  public func selectProvider(_ providerID: String) throws -> IdentityProvider {
    guard let provider = try loadConfiguration().first(where: { $0.id == providerID }) else {
      throw AuthenticationError.configurationError("there is no provider \(providerID)")
    }
    return provider
  }
}
