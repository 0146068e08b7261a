/// Rules 4 and 5: among several audiences there is an `azp`, and where there is one, it is this client, under one of its
/// identifiers. An audience that is listed twice is one audience.
struct AuthorizedPartyRule: IDTokenRule {
  let statement = "azp, where it is needed, is this client"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("azp")
    let party = token.claims.authorizedParty
    let audiences = token.claims.audiences
    let isForOneClient = !audiences.isEmpty && audiences.allSatisfy { $0.isIdentical(to: audiences.first) }
    guard party.map(expected.isClient) ?? isForOneClient else {
      throw .authorizedParty(party)
    }
  }
}
