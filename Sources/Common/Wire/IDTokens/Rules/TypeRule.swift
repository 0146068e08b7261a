/// The header names no other kind of token: a provider signs access tokens, logout tokens and others with the same key
/// (RFC 8725, sections 2.8 and 3.11; Back-Channel Logout 1.0, section 2.4; RFC 9068, section 2.1).
///
/// OpenID Connect Core registers no type for ID tokens. Providers send none, `JWT`, or a word of their own. Types of other
/// tokens end in `+jwt`.
package struct TypeRule: IDTokenRule {
  package let statement = "typ is that of an ID token, or general"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let found = token.type else { return }
    var type = found.lowercased()
    // The prefix may be left out where there is no other slash (RFC 7515, section 4.1.9).
    if type.hasPrefix("application/") { type.removeFirst("application/".count) }
    guard !type.hasSuffix("+jwt") || ["id_token+jwt", "id-token+jwt"].contains(type) else { throw .type(found) }
  }
}
