/// Rule 11: `nonce` is that of the request. A token that answers no request of ours has another one.
struct NonceRule: IDTokenRule {
  let statement = "nonce is that of this sign-in"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let nonce = expected.nonce else { return }
    try token.claims.judge("nonce")
    guard nonce.isIdentical(to: token.claims.nonce) else { throw .nonce }
  }
}
