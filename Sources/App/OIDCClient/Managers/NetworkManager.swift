internal import Foundation
internal import Wire

/// Sends requests to identity providers and reads their answers.
public struct NetworkManager: NetworkManagerProtocol, Sendable {
  private let dependencies: SignInDependencies

  /// Uses the transport of `dependencies`.
  public init(dependencies: SignInDependencies) { self.dependencies = dependencies }

  /// Returns the document in the answer.
  ///
  /// - Throws: `AuthenticationError`; with status 401 `.tokenExpired`, which calls for a refresh.
  public func performRequest<T: Codable>(_ request: NetworkRequest) async throws -> T {
    let answer: HTTPResponse
    do throws(OIDCError) {
      answer = try await DocumentExchange(transport: dependencies.transport).send(
        request.exchange, called: "the document")
    } catch {
      throw AuthenticationError(error)
    }
    guard answer.status != 401 else { throw AuthenticationError.tokenExpired }
    guard answer.status == 200 else { throw AuthenticationError.serverError(statusCode: answer.status) }
    do { return try ProviderJSON.decode(T.self, from: answer.body) } catch {
      throw AuthenticationError(OIDCError.malformed("the document is not the JSON that was expected"))
    }
  }

  /// Exchanges a grant for tokens, once, at the provider's token endpoint, which is discovered if need be. An ID token in
  /// the answer is verified.
  ///
  /// - Throws: `AuthenticationError`; `.configurationError` for a password if the provider's entry does not allow it.
  public func performTokenRequest(_ request: TokenRequest) async throws -> TokenResponse {
    do throws(OIDCError) {
      return try await ProviderClient(provider: request.provider, dependencies: dependencies).exchange(request.grant)
    } catch {
      throw AuthenticationError(error)
    }
  }
}
