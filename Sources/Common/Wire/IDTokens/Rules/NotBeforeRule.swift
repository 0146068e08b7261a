#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A rule of RFC 7519, section 4.1.5: the token may be used already, if it says from when on.
package struct NotBeforeRule: IDTokenRule {
  package let statement = "nbf, if any, is not in the future"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("nbf")
    guard let start = token.claims.notBefore else { return }
    guard start.timeIntervalSince(expected.time) <= expected.leeway else { throw .notYetValid }
  }
}
