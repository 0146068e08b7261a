/// Rule 3: `aud` contains this client, under one of its identifiers, and no audience that it does not trust.
package struct AudienceRule: IDTokenRule {
  package let statement = "aud is this client"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("aud")
    let audiences = token.claims.audiences
    guard audiences.contains(where: expected.isClient),
      audiences.allSatisfy({ expected.isClient($0) || expected.trustedAudiences.contains(where: $0.isIdentical) })
    else { throw .audience(audiences) }
  }
}
