internal import JWTKit

/// The rule for the private key of `private_key_jwt`: P-256 or RSA of at least 2,048 bits, as PEM without encryption.
enum ClientKeyRule {
  /// The algorithms that a usable key can sign with.
  static func algorithms(_ pem: String) -> [SignatureAlgorithm] {
    (try? ES256PrivateKey(pem: pem)) != nil ? [.es256] : [.rs256, .ps256]
  }

  /// What is wrong with `pem`; `nil` if it is such a key.
  static func problem(_ pem: String) -> String? {
    guard pem.contains("-----BEGIN "), pem.contains("PRIVATE KEY-----") else { return "is not a private key in PEM" }
    if pem.contains("ENCRYPTED") { return "must not be encrypted" }
    let isUsable = (try? ES256PrivateKey(pem: pem)) != nil || (try? Insecure.RSA.PrivateKey(pem: pem)) != nil
    return isUsable ? nil : "must be a P-256 key, or an RSA key of at least 2,048 bits"
  }
}
