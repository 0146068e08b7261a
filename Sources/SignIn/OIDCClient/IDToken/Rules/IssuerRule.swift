/// Rule 2: `iss` is the issuer, character by character.
struct IssuerRule: IDTokenRule {
  let statement = "iss is the provider"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard token.claims.issuer == expected.issuer else { throw .issuer(token.claims.issuer) }
  }
}
