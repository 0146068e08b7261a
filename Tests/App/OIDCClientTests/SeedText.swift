import Foundation

@testable import OIDCClient

/// The five protocols of the design document, word for word, in a scope of their own. The file compiles only if the types
/// of `OIDCClient` implement that text.
enum SeedText {
  protocol AuthenticationManagerProtocol {
    func authenticate(username: String, password: String) async throws -> AuthenticationResult
    func refreshTokenIfNeeded() async throws -> Bool
    func logout() async
    func isAuthenticated() -> Bool
    var authenticationState: AuthenticationState { get }
  }

  protocol IdentityProviderServiceProtocol {
    func authenticate(credentials: Credentials, provider: IdentityProvider) async throws -> TokenResponse
    func refreshToken(_ refreshToken: String, provider: IdentityProvider) async throws -> TokenResponse
    func validateConfiguration(_ provider: IdentityProvider) throws
  }

  protocol KeychainManagerProtocol {
    func store(tokens: AuthTokens, for userID: String) throws
    func retrieveTokens(for userID: String) throws -> AuthTokens?
    func deleteTokens(for userID: String) throws
    func clearAllTokens() throws
  }

  protocol NetworkManagerProtocol {
    func performRequest<T: Codable>(_ request: NetworkRequest) async throws -> T
    func performTokenRequest(_ request: TokenRequest) async throws -> TokenResponse
  }

  protocol ConfigurationManagerProtocol {
    func loadConfiguration() throws -> [IdentityProvider]
    func validateProvider(_ provider: IdentityProvider) throws
    func selectProvider(_ providerID: String) throws -> IdentityProvider
  }
}

extension AuthenticationManager: SeedText.AuthenticationManagerProtocol {}
extension IdentityProviderService: SeedText.IdentityProviderServiceProtocol {}
extension KeychainManager: SeedText.KeychainManagerProtocol {}
extension NetworkManager: SeedText.NetworkManagerProtocol {}
extension ConfigurationManager: SeedText.ConfigurationManagerProtocol {}
