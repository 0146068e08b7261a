internal import ByteCoding
public import Cryptography

/// A P-256 public key as a JSON Web Key (RFC 7517, RFC 7518 section 6.2).
public struct JSONWebKey: Sendable, Hashable {
  /// The x coordinate, 32 bytes in base64url.
  public let x: String
  /// The y coordinate, 32 bytes in base64url.
  public let y: String

  public init(_ key: P256PublicKey) {
    // A `P256PublicKey` is always uncompressed: 0x04, then x and y.
    x = Base64URL.encode(key.x963.dropFirst().prefix(32))
    y = Base64URL.encode(key.x963.suffix(32))
  }

  /// The JWK thumbprint (RFC 7638): the SHA-256 of the required members in the order of their names, in base64url, 43
  /// characters.
  public var thumbprint: String {
    let members = JSONText.object(["crv": "P-256", "kty": "EC", "x": x, "y": y])
    return Base64URL.encode(SHA256.hash(Array(members.utf8)))
  }

  /// The JSON text of the key, as an ES256 verification key with its thumbprint as `kid`.
  public var text: String {
    JSONText.object([
      "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": thumbprint, "x": x, "y": y,
    ])
  }
}
