internal import ByteCoding
internal import Crypto

/// Section 3.1.3.8: where there is an `at_hash`, it is the left half of the hash of the access token.
struct AccessTokenHashRule: IDTokenRule {
  let statement = "at_hash, if any, is that of the access token"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let accessToken = expected.accessToken else { return }
    try token.claims.judge("at_hash")
    guard let hash = token.claims.accessTokenHash,
      // Another rule refuses an unknown algorithm.
      let algorithm = SignatureAlgorithm(rawValue: token.algorithm)
    else { return }
    let bytes = Array(accessToken.utf8)
    let digests: [[UInt8]] =
      switch algorithm {
      case .rs256, .ps256, .es256: [Array(SHA256.hash(data: bytes))]
      case .rs384, .ps384, .es384: [Array(SHA384.hash(data: bytes))]
      case .rs512, .ps512, .es512: [Array(SHA512.hash(data: bytes))]
      // Ed25519 signs with SHA-512 inside. EdDSA names no hash, and some providers, such as glewlwyd, use SHA-256.
      case .eddsa, .ed25519: [Array(SHA512.hash(data: bytes)), Array(SHA256.hash(data: bytes))]
      }
    let found = Base64URL.decode(hash)
    guard digests.contains(where: { found == Array($0.prefix($0.count / 2)) }) else { throw .accessTokenHash }
  }
}
