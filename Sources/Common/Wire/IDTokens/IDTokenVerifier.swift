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
  private var afterSignature: [any IDTokenRule] {
    [
      AlgorithmRule(), ExpiryRule(), IssuedAtRule(), NotBeforeRule(), NonceRule(),
      AccessTokenHashRule(cryptography: cryptography), SubjectRule(),
    ]
  }

  private let keys: ProviderKeys
  private let cryptography: any IDTokenCryptography

  /// Uses the keys of the provider.
  package init(keys: ProviderKeys, cryptography: any IDTokenCryptography) {
    (self.keys, self.cryptography) = (keys, cryptography)
  }

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
    do throws(IDTokenRejection) { try await verifySignature(of: token) } catch { rejection = error }
    findings.append(Finding(statement: "the signature is that of a key of the provider", rejection: rejection))
    return findings + afterSignature.map(finding)
  }

  private func verifySignature(of token: IDToken) async throws(IDTokenRejection) {
    let (key, algorithm) = try keys.key(for: token)
    try await cryptography.verify(token, with: key, algorithm)
  }
}

/// The hash functions of signature algorithms.
package enum IDTokenHash: Sendable { case sha256, sha384, sha512 }

/// The cryptography of ID tokens: apps have swift-crypto, services have OpenSSL.
package protocol IDTokenCryptography: Sendable {
  /// Verifies the signature of a token. The key is one for the algorithm.
  ///
  /// - Throws: `.unknownKey` if the numbers of the key are not usable, `.signature`.
  func verify(
    _ token: IDToken, with key: ProviderKey, _ algorithm: SignatureAlgorithm
  ) async throws(IDTokenRejection)

  /// Returns the digest of `bytes`.
  func digest(_ hash: IDTokenHash, of bytes: [UInt8]) -> [UInt8]
}
