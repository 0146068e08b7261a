// The five protocols of the design document, word for word: an app written against it compiles against these.
// `KeychainManager`, `NetworkManager`, `ConfigurationManager`, `IdentityProviderService` and `AuthenticationManager`
// implement them; a test compiles the document's own text beside them.

/// Coordinates everything that concerns signing in.
public protocol AuthenticationManagerProtocol {
  /// Signs in with user name and password, where the provider's entry allows it, and stores the tokens.
  func authenticate(username: String, password: String) async throws -> AuthenticationResult
  /// Renews the access token if less than a minute of it remains.
  ///
  /// - Returns: Whether there is a valid access token now.
  func refreshTokenIfNeeded() async throws -> Bool
  /// Revokes the tokens at the provider where it can be reached, and deletes them here in any case.
  func logout() async
  /// Whether there is an access token that has not expired.
  func isAuthenticated() -> Bool
  /// A snapshot of the state.
  var authenticationState: AuthenticationState { get }
}

/// Talks to identity providers.
public protocol IdentityProviderServiceProtocol {
  /// Exchanges user name and password for tokens.
  func authenticate(credentials: Credentials, provider: IdentityProvider) async throws -> TokenResponse
  /// Exchanges a refresh token for new tokens. It is sent once: see `RefreshDecision`.
  func refreshToken(_ refreshToken: String, provider: IdentityProvider) async throws -> TokenResponse
  /// Checks a provider's settings without a network.
  func validateConfiguration(_ provider: IdentityProvider) throws
}

/// Keeps tokens.
public protocol KeychainManagerProtocol {
  /// Replaces the tokens of a user.
  func store(tokens: AuthTokens, for userID: String) throws
  /// The tokens of a user; `nil` if there are none.
  func retrieveTokens(for userID: String) throws -> AuthTokens?
  /// Deletes the tokens of a user. It is no error if there are none.
  func deleteTokens(for userID: String) throws
  /// Deletes the tokens of all users.
  func clearAllTokens() throws
}

/// Sends requests and reads their answers.
public protocol NetworkManagerProtocol {
  /// Returns the document that the answer contains.
  func performRequest<T: Codable>(_ request: NetworkRequest) async throws -> T
  /// Exchanges a grant for tokens.
  func performTokenRequest(_ request: TokenRequest) async throws -> TokenResponse
}

/// Knows the identity providers.
public protocol ConfigurationManagerProtocol {
  /// All providers, in their order.
  func loadConfiguration() throws -> [IdentityProvider]
  /// Checks a provider's settings.
  func validateProvider(_ provider: IdentityProvider) throws
  /// The provider with an identifier.
  func selectProvider(_ providerID: String) throws -> IdentityProvider
}
