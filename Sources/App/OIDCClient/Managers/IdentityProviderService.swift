/// Exchanges credentials and refresh tokens for tokens, verified.
public struct IdentityProviderService: IdentityProviderServiceProtocol, Sendable {
  private let dependencies: @Sendable (IdentityProvider) -> SignInDependencies

  /// `dependencies` are asked for each provider, since roots and pins belong to one.
  public init(dependencies: @escaping @Sendable (IdentityProvider) -> SignInDependencies) {
    self.dependencies = dependencies
  }

  /// Exchanges user name and password for tokens.
  ///
  /// - Throws: `SignInFieldError` for empty fields, before anything is sent; `AuthenticationError`.
  public func authenticate(credentials: Credentials, provider: IdentityProvider) async throws -> TokenResponse {
    try SignInFieldError.check(credentials)
    return try await exchange(.password(credentials, scopes: provider.scopes), at: provider)
  }

  /// Exchanges a refresh token for new tokens. It is sent once.
  public func refreshToken(_ refreshToken: String, provider: IdentityProvider) async throws -> TokenResponse {
    try await exchange(.refreshToken(refreshToken), at: provider)
  }

  /// Checks a provider's settings without a network.
  public func validateConfiguration(_ provider: IdentityProvider) throws {
    try ConfigurationManager { [provider] }.validateProvider(provider)
  }

  private func exchange(_ grant: TokenRequest.Grant, at provider: IdentityProvider) async throws -> TokenResponse {
    try validateConfiguration(provider)
    do throws(OIDCError) {
      return try await ProviderClient(provider: provider, dependencies: dependencies(provider)).exchange(grant)
    } catch {
      throw AuthenticationError(error)
    }
  }
}
