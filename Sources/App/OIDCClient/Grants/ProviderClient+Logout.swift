internal import ByteCoding
public import Foundation
internal import Wire

extension ProviderClient {
  /// Revokes the tokens (RFC 7009): the refresh token, and the access token where there is no other.
  ///
  /// - Throws: `.notOffered` if the provider has no endpoint for it.
  public func revoke(_ account: StoredAccount) async throws(OIDCError) {
    let provider = try await resolved()
    guard let endpoint = provider.endpoints.revocation else {
      throw try await metadata()?.fault(of: "revocation_endpoint") ?? .notOffered("revocation")
    }
    let refresh = account.tokens.refreshToken
    let token = refresh ?? account.tokens.accessToken
    let fields = [
      ("token", token),
      ("token_type_hint", refresh == nil ? "access_token" : "refresh_token"),
    ]
    let answer = try await tokenEndpoint(of: provider).post(
      fields, to: endpoint, called: "the revocation endpoint", withholding: [token])
    guard [200, 204].contains(answer.response.status) else { throw answer.error(of: "the revocation endpoint") }
  }

  /// Where a browser ends the session at the provider (RP-Initiated Logout 1.0); `nil` if the provider has no such page.
  ///
  /// The URL names the client and not the ID token, so that it can be shown.
  public func endSessionURL() async throws(OIDCError) -> URL? {
    let provider = try await resolved()
    guard let endpoint = provider.endpoints.endSession else { return nil }
    var components = URLComponents(url: endpoint, resolvingAgainstBaseURL: true)
    let query = [components?.percentEncodedQuery, FormEncoding.encode([("client_id", provider.clientID)])]
    components?.percentEncodedQuery = query.compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "&")
    return components?.url
  }
}
