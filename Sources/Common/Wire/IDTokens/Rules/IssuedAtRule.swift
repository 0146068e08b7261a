#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Rule 10: the token was issued not long ago, and not in the future.
struct IssuedAtRule: IDTokenRule {
  let statement = "iat is a short time ago"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("iat")
    guard let issued = token.claims.issuedAt else { throw .issuedAt }
    let age = expected.time.timeIntervalSince(issued)
    guard (-expected.leeway...expected.longestAge + expected.leeway).contains(age) else { throw .issuedAt }
  }
}
