internal import Foundation

/// Rule 9: the token has not expired.
struct ExpiryRule: IDTokenRule {
  let statement = "exp is in the future"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("exp")
    guard expected.ignoresExpiry || !expected.hasExpired(token.claims) else { throw .expired }
  }
}
