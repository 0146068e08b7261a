internal import ByteCoding
internal import Cryptography
internal import Wire

/// The cryptography of ID tokens by OpenSSL.
struct OpenSSLCryptography: IDTokenCryptography {
  func verify(
    _ token: IDToken, with key: ProviderKey, _ algorithm: SignatureAlgorithm
  ) async throws(IDTokenRejection) {
    guard let (verifier, scheme) = Self.verifier(key, algorithm) else { throw .unknownKey(token.keyID) }
    // The signature covers the first two parts with the period between them (RFC 7515, section 5.2).
    guard let dot = token.text.utf8.lastIndex(of: UInt8(ascii: ".")),
      let signature = Base64URL.decode(token.text[token.text.utf8.index(after: dot)...]),
      verifier.isValid(signature, for: Array(token.text.utf8[..<dot]), scheme)
    else { throw .signature }
  }

  /// Returns `nil` for a key whose numbers are missing or malformed.
  private static func verifier(
    _ key: ProviderKey, _ algorithm: SignatureAlgorithm
  ) -> (TokenKey, TokenKey.Scheme)? {
    func number(_ text: String?) -> [UInt8] { text.flatMap { Base64URL.decode($0) } ?? [] }
    func rsa(_ scheme: TokenKey.Scheme) -> (TokenKey, TokenKey.Scheme)? {
      TokenKey(modulus: number(key.n), exponent: number(key.e)).map { ($0, scheme) }
    }
    func ecdsa(_ curve: TokenKey.Curve, _ hash: TokenKey.Hash) -> (TokenKey, TokenKey.Scheme)? {
      TokenKey(curve, x: number(key.x), y: number(key.y)).map { ($0, .ecdsa(hash)) }
    }
    return switch algorithm {
    case .rs256: rsa(.rsa(.sha256))
    case .rs384: rsa(.rsa(.sha384))
    case .rs512: rsa(.rsa(.sha512))
    case .ps256: rsa(.pss(.sha256))
    case .ps384: rsa(.pss(.sha384))
    case .ps512: rsa(.pss(.sha512))
    case .es256: ecdsa(.p256, .sha256)
    case .es384: ecdsa(.p384, .sha384)
    case .es512: ecdsa(.p521, .sha512)
    case .eddsa, .ed25519: TokenKey(ed25519: number(key.x)).map { ($0, .ed25519) }
    }
  }

  func digest(_ hash: IDTokenHash, of bytes: [UInt8]) -> [UInt8] {
    switch hash {
    case .sha256: TokenKey.digest(.sha256, of: bytes)
    case .sha384: TokenKey.digest(.sha384, of: bytes)
    case .sha512: TokenKey.digest(.sha512, of: bytes)
    }
  }
}
