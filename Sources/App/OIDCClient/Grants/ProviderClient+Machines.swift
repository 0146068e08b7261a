internal import ByteCoding
internal import Foundation
internal import Wire

extension ProviderClient {
  // MARK: Machine accounts

  /// Exchanges the credentials of the client itself for an access token (RFC 6749, section 4.4). An ID token or a
  /// refresh token in the answer is left out. The request may be repeated: nothing is spent by it.
  ///
  /// - Throws: `.notOffered` unless the provider's entry is that of a machine account.
  public func ownTokens() async throws(OIDCError) -> StoredAccount {
    guard self.provider.isOfMachine else { throw .notOffered("tokens of the client itself: its entry is of a person") }
    let provider = try await resolved()
    return try await redeem(.clientCredentials(scopes: provider.scopes), at: provider, nonce: nil)
  }

  // MARK: Token exchange

  /// Exchanges a token for another one, for another service or with fewer rights (RFC 8693). The request is sent once,
  /// and the answer is kept nowhere.
  ///
  /// - Parameter key: The key that the subject token is bound to, and the new one is to be; `nil` for a bearer
  ///   token. The DPoP proof of an attested client binds the new token to the key of the attestation.
  /// - Throws: `.refused`, for example with `invalid_target`; `.tokenType` if the new token is bound and none was to
  ///   be.
  public func exchange(
    _ exchange: TokenExchange, boundTo key: DPoPKey? = nil
  ) async throws(OIDCError) -> TokenResponse {
    let provider = try await resolved()
    var key = key
    // A provider binds the new token to the key of a proof that it gets, whatever the subject token is.
    if key == nil { key = try await attestedKey(at: provider) }
    let answer = try await tokenEndpoint(of: provider).redeem(.tokenExchange(exchange), boundTo: key)
    switch answer.tokens.tokenType.lowercased() {
    // A token that is no access token (section 2.2.1).
    case "bearer", "n_a": break
    case "dpop" where key != nil: break
    default: throw .tokenType(answer.tokens.tokenType)
    }
    return answer
  }
}
