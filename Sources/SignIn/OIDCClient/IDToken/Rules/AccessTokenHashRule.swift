internal import ByteCoding
internal import Crypto

/// Section 3.1.3.8: where there is an `at_hash`, it is the left half of the hash of the access token.
struct AccessTokenHashRule: IDTokenRule {
  let statement = "at_hash, if any, is that of the access token"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let hash = token.claims.accessTokenHash, let accessToken = expected.accessToken,
      // Another rule refuses an unknown algorithm.
      let algorithm = SignatureAlgorithm(rawValue: token.algorithm)
    else { return }
    let bytes = Array(accessToken.utf8)
    let digest: [UInt8] =
      switch algorithm {
      case .rs256, .ps256, .es256: Array(SHA256.hash(data: bytes))
      case .rs384, .es384: Array(SHA384.hash(data: bytes))
      // Ed25519 signs with SHA-512 inside.
      case .rs512, .eddsa: Array(SHA512.hash(data: bytes))
      }
    guard Base64URL.decode(hash) == Array(digest.prefix(digest.count / 2)) else { throw .accessTokenHash }
  }
}
