/// An OpenID provider at which people of a console sign in (authorization code with PKCE, RFC 7636).
public protocol ConsoleProvider: Sendable {
  /// The issuer, as in the settings.
  var issuer: String { get }

  /// Returns the address to which the browser goes.
  ///
  /// - Throws: `ConsoleFault` if the provider does not say where people sign in.
  func address(of request: ConsoleSignInRequest) async throws(ConsoleFault) -> String

  /// Exchanges the code of a redirect, and verifies the ID token.
  ///
  /// - Parameters:
  ///   - request: The request that the browser began.
  ///   - issuer: The `iss` of the redirect (RFC 9207); `nil` if it has none.
  /// - Throws: `ConsoleFault` if the provider does not answer in time, or names no person.
  func person(
    _ code: String, for request: ConsoleSignInRequest, from issuer: String?
  ) async throws(ConsoleFault) -> ConsolePerson
}

/// What a sign-in at a provider begins with. Each value is random and used once.
public struct ConsoleSignInRequest: Sendable {
  /// Where the provider sends the browser back to.
  public let redirect: String
  public let state: String
  public let nonce: String
  /// The PKCE verifier.
  public let verifier: String
}
