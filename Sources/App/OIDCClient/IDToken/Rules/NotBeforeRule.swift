internal import Foundation

/// A rule of RFC 7519, section 4.1.5: the token may be used already, if it says from when on.
struct NotBeforeRule: IDTokenRule {
  let statement = "nbf, if any, is not in the future"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("nbf")
    guard let start = token.claims.notBefore else { return }
    guard start.timeIntervalSince(expected.time) <= expected.leeway else { throw .notYetValid }
  }
}
