/// Rules 7 and 8: the algorithm is one of those accepted, all with a public key. `none` and HMAC are never accepted: with
/// HMAC, a public key would be the secret.
package struct AlgorithmRule: IDTokenRule {
  package let statement = "the algorithm has a public key"

  package init() {}

  package func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard SignatureAlgorithm(rawValue: token.algorithm) != nil else { throw .algorithm(token.algorithm) }
  }
}

/// The algorithms that are accepted (RFC 7518, section 3.1; RFC 8037; RFC 9864).
public enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
  /// RSA, PKCS #1 v1.5, SHA-256. The one that every provider has.
  case rs256 = "RS256"
  /// RSA, PKCS #1 v1.5, SHA-384.
  case rs384 = "RS384"
  /// RSA, PKCS #1 v1.5, SHA-512.
  case rs512 = "RS512"
  /// RSA, PSS, SHA-256.
  case ps256 = "PS256"
  /// RSA, PSS, SHA-384.
  case ps384 = "PS384"
  /// RSA, PSS, SHA-512.
  case ps512 = "PS512"
  /// ECDSA, P-256.
  case es256 = "ES256"
  /// ECDSA, P-384.
  case es384 = "ES384"
  /// ECDSA, P-521.
  case es512 = "ES512"
  /// Ed25519, under the name that stands for Ed448, too.
  case eddsa = "EdDSA"
  /// Ed25519, under its own name (RFC 9864).
  case ed25519 = "Ed25519"

  /// The names that a key for this algorithm may have as its `alg`. The two of Ed25519 have one meaning.
  package var namesOfKey: [String] {
    switch self {
    case .eddsa, .ed25519: [Self.eddsa.rawValue, Self.ed25519.rawValue]
    default: [rawValue]
    }
  }
}
