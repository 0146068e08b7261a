/// Rule 3: `aud` contains this client, and no audience that it does not trust.
struct AudienceRule: IDTokenRule {
  let statement = "aud is this client"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    let audiences = token.claims.audiences
    guard audiences.contains(expected.clientID),
      Set(audiences).subtracting([expected.clientID]).isSubset(of: expected.trustedAudiences)
    else { throw .audience(audiences) }
  }
}
