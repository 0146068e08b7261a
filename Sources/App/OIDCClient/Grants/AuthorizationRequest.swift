internal import ByteCoding
public import Foundation

/// A sign-in in the browser: what was sent with it, and what its answer must match (RFC 6749, section 4.1; RFC 7636).
public struct AuthorizationRequest: Sendable, Hashable {
  /// Where the browser goes.
  public let url: URL
  /// Where it comes back to.
  public let redirectURI: String
  let state: String
  let nonce: String?
  let pkce: PKCE
  let issuer: String?
  let namesIssuer: Bool
  let provider: IdentityProvider
  /// How long the provider keeps the request, in seconds, if it was pushed: the browser must be there by then.
  public internal(set) var lifetime: Int?

  /// Whether `redirect` has the `state` of this request. Another one is the answer to another request, or a stranger's.
  ///
  /// Says nothing about the rest of the redirect, which `code(in:)` reads.
  public func isAnswered(by redirect: URL) -> Bool {
    let query = URLComponents(url: redirect, resolvingAgainstBaseURL: true)?.percentEncodedQuery ?? ""
    return FormEncoding.values(of: "state", in: query).contains {
      constantTimeEqual(Array($0.utf8), Array(state.utf8))
    }
  }

  /// Reads the redirect.
  ///
  /// `state` is compared first: an answer to another request is not looked at. Then `iss`, where the provider sends it
  /// (RFC 9207), before an error or a code is believed.
  ///
  /// - Returns: The authorization code.
  /// - Throws: `.malformed`, `.state`, `.redirectIssuer`, `.refused`.
  public func code(in redirect: URL) throws(OIDCError) -> String {
    guard let query = URLComponents(url: redirect, resolvingAgainstBaseURL: true)?.percentEncodedQuery,
      let fields = FormEncoding.decode(query)
    else { throw .malformed("the redirect has no query, or a field twice") }
    guard let state = fields["state"], constantTimeEqual(Array(state.utf8), Array(self.state.utf8)) else {
      throw .state
    }
    if let issuer {
      let found = fields["iss"]
      guard found.map(issuer.isIdentical) ?? !namesIssuer else { throw .redirectIssuer(found) }
    }
    if let error = fields["error"] {
      guard let refusal = ProviderRefusal(received: error, explanation: fields["error_description"]) else {
        throw .malformed("error of the redirect is \(ShownValue.quoted(error)), not a code (RFC 6749, appendix A.7)")
      }
      throw .refused(refusal)
    }
    guard let code = fields["code"], !code.isEmpty else { throw .malformed("the redirect has no code") }
    return code
  }
}

extension AuthorizationRequest: CustomStringConvertible, CustomReflectable {
  /// The provider.
  public var description: String { "sign-in at \(provider.id)" }
  /// No members: verifier, state and nonce stay out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
