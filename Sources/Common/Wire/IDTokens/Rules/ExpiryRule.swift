#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Rule 9: the token has not expired.
package struct ExpiryRule: IDTokenRule {
  package let statement = "exp is in the future"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    try token.claims.judge("exp")
    guard expected.ignoresExpiry || !expected.hasExpired(token.claims) else { throw .expired }
  }
}
