internal import Foundation
internal import JWTKit

/// Verifies ID tokens: OpenID Connect Core 1.0, section 3.1.3.7, in its order, after the kind of the token.
public struct IDTokenVerifier: Sendable {
  /// A rule, and what came of it.
  public struct Finding: Sendable, Hashable {
    /// What holds if the rule does.
    public let statement: String
    /// Why it does not hold; `nil` if it does.
    public let rejection: IDTokenRejection?
  }

  private static let beforeSignature: [any IDTokenRule] = [
    TypeRule(), IssuerRule(), AudienceRule(), AuthorizedPartyRule(),
  ]
  private static let afterSignature: [any IDTokenRule] = [
    AlgorithmRule(), ExpiryRule(), IssuedAtRule(), NotBeforeRule(), NonceRule(), AccessTokenHashRule(), SubjectRule(),
  ]

  private let keys: ProviderKeys

  /// Uses the keys of the provider.
  public init(keys: ProviderKeys) { self.keys = keys }

  /// Verifies a token.
  ///
  /// - Throws: The rejection of the first rule that does not hold.
  public func verify(_ token: IDToken, as expected: IDTokenExpectation) async throws(IDTokenRejection) {
    for finding in await findings(token, as: expected) {
      if let rejection = finding.rejection { throw rejection }
    }
  }

  /// Every rule, whether it holds or not, in the order of the specification.
  public func findings(_ token: IDToken, as expected: IDTokenExpectation) async -> [Finding] {
    func finding(_ rule: any IDTokenRule) -> Finding {
      do throws(IDTokenRejection) {
        try rule.check(token, expected)
        return Finding(statement: rule.statement, rejection: nil)
      } catch {
        return Finding(statement: rule.statement, rejection: error)
      }
    }
    var findings = Self.beforeSignature.map(finding)
    var rejection: IDTokenRejection?
    do throws(IDTokenRejection) { try await keys.verify(token) } catch { rejection = error }
    findings.append(Finding(statement: "the signature is that of a key of the provider", rejection: rejection))
    return findings + Self.afterSignature.map(finding)
  }
}
