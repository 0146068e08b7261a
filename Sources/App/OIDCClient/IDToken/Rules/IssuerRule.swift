/// Rule 2: `iss` is the issuer, character by character.
struct IssuerRule: IDTokenRule {
  let statement = "iss is the provider"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("iss")
    guard expected.issuer.isIdentical(to: token.claims.issuer) else { throw .issuer(token.claims.issuer) }
  }
}
