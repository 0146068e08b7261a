public import ByteCoding

/// Verifies ID tokens of the identity provider that the operator trusts.
public protocol IdentityTokenVerifier: Sendable {
  /// Verifies `token` and returns the user that it names.
  ///
  /// - Parameters:
  ///   - nonce: the nonce that the token must have.
  ///   - now: the time against which its dates are checked.
  /// - Throws: `FederationRejection` with the rule that does not hold; `MFAStoreError` if the keys of the provider are
  ///   not available.
  func subject(of token: String, nonce: String, at now: Timestamp) async throws -> ProviderSubject
}
