/// How an attested client proves that it holds the key of its attestation.
public enum AttestationProof: String, Sendable, Hashable, CaseIterable {
  /// As the provider's document says; by a proof of its own where that says nothing.
  case automatic = "auto"
  /// By a proof of its own (`attest_jwt_client_auth`).
  case pop
  /// By the DPoP proof of the request, so that tokens are bound to the same key (`attest_jwt_client_auth_dpop`).
  case dpop

  /// The method that a provider offers.
  ///
  /// - Parameters:
  ///   - methods: Those of its document; `nil` if that does not say.
  ///   - algorithms: Those that its document names for DPoP proofs; `nil` if that does not say.
  ///   - allowsDPoP: Whether tokens may be bound to a key.
  /// - Throws: `.notOffered` if only a DPoP proof would do, and the provider verifies none with ES256.
  func chosen(
    among methods: [String]?, dpopAlgorithms algorithms: [String]?, allowsDPoP: Bool
  ) throws(OIDCError) -> AttestationProof {
    var chosen = self
    if self == .automatic {
      let offered = methods ?? []
      chosen =
        allowsDPoP && !Self.pop.isOffered(among: offered) && Self.dpop.isOffered(among: offered) ? .dpop : .pop
    }
    if chosen == .dpop, let algorithms, !algorithms.contains(where: SignatureAlgorithm.es256.rawValue.isIdentical) {
      throw .notOffered("attestations with a DPoP proof by ES256")
    }
    return chosen
  }

  private static let method = "attest_jwt_client_auth"
  private static let combinedMethod = "attest_jwt_client_auth_dpop"

  /// Whether a provider that offers `methods` takes this proof.
  func isOffered(among methods: [String]) -> Bool {
    methods.contains { name in
      switch self {
      case .automatic: Self.method.isIdentical(to: name) || Self.combinedMethod.isIdentical(to: name)
      case .pop: Self.method.isIdentical(to: name)
      case .dpop: Self.combinedMethod.isIdentical(to: name)
      }
    }
  }
}
