/// Rule 2: `iss` is the issuer, character by character. Google may leave out the scheme (OpenID Connect Core 1.0,
/// section 15.6.2).
package struct IssuerRule: IDTokenRule {
  package let statement = "iss is the provider"
  private static let google = "https://accounts.google.com"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("iss")
    let issuer = token.claims.issuer
    guard
      expected.issuer.isIdentical(to: issuer)
        || Self.google.isIdentical(to: expected.issuer)
          && Self.google.dropFirst("https://".count).description.isIdentical(to: issuer)
    else { throw .issuer(issuer) }
  }
}
