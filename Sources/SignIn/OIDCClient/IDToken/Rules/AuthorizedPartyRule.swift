/// Rules 4 and 5: among several audiences there is an `azp`, and where there is one, it is this client.
struct AuthorizedPartyRule: IDTokenRule {
  let statement = "azp, where it is needed, is this client"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    let party = token.claims.authorizedParty
    guard party == expected.clientID || (party == nil && token.claims.audiences.count == 1) else {
      throw .authorizedParty(party)
    }
  }
}
