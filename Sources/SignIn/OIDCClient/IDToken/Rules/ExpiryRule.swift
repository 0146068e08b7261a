internal import Foundation

/// Rule 9: the token has not expired.
struct ExpiryRule: IDTokenRule {
  let statement = "exp is in the future"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let end = token.claims.expiresAt, expected.time < end.addingTimeInterval(expected.leeway) else {
      throw .expired
    }
  }
}
