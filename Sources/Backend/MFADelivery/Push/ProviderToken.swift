internal import ByteCoding
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// Makes the signed tokens (RFC 7515, section 7.1) by which the backend names itself to push services.
enum ProviderToken {
  /// Signs with ES256.
  static func signed(header: String, claims: String, by key: P256.Signing.PrivateKey) throws -> String {
    let text = signedText(header, claims)
    return text + "." + Base64URL.encode(Array(try key.signature(for: Data(text.utf8)).rawRepresentation))
  }

  /// Signs with RS256.
  static func signed(header: String, claims: String, by key: _RSA.Signing.PrivateKey) throws -> String {
    let text = signedText(header, claims)
    let signature = try key.signature(for: SHA256.hash(data: Data(text.utf8)), padding: .insecurePKCS1v1_5)
    return text + "." + Base64URL.encode(Array(signature.rawRepresentation))
  }

  private static func signedText(_ header: String, _ claims: String) -> String {
    Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
  }
}
