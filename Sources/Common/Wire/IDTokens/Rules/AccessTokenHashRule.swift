internal import ByteCoding

/// Section 3.1.3.8: where there is an `at_hash`, it is the left half of the hash of the access token.
struct AccessTokenHashRule: IDTokenRule {
  let cryptography: any IDTokenCryptography
  let statement = "at_hash, if any, is that of the access token"

  func check(_ token: IDToken, _ expected: IDTokenExpectation) throws(IDTokenRejection) {
    guard let accessToken = expected.accessToken else { return }
    try token.claims.judge("at_hash")
    guard let hash = token.claims.accessTokenHash,
      // Another rule refuses an unknown algorithm.
      let algorithm = SignatureAlgorithm(rawValue: token.algorithm)
    else { return }
    let bytes = Array(accessToken.utf8)
    let hashes: [IDTokenHash] =
      switch algorithm {
      case .rs256, .ps256, .es256: [.sha256]
      case .rs384, .ps384, .es384: [.sha384]
      case .rs512, .ps512, .es512: [.sha512]
      // Ed25519 signs with SHA-512 inside. EdDSA names no hash, and some providers, such as glewlwyd, use SHA-256.
      case .eddsa, .ed25519: [.sha512, .sha256]
      }
    let digests = hashes.map { cryptography.digest($0, of: bytes) }
    let found = Base64URL.decode(hash)
    guard digests.contains(where: { found == Array($0.prefix($0.count / 2)) }) else { throw .accessTokenHash }
  }
}
