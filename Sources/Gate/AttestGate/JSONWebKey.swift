internal import ByteCoding
public import Cryptography

/// A public key on P-256 as a JSON Web Key (RFC 7517, RFC 7518 section 6.2).
public struct JSONWebKey: Sendable, Hashable {
  /// The coordinates, 32 bytes each, in base64url.
  public let x: String
  public let y: String

  public init(_ key: P256PublicKey) {
    // 0x04, then x and y: the only form that a `P256PublicKey` has.
    x = Base64URL.encode(key.x963.dropFirst().prefix(32))
    y = Base64URL.encode(key.x963.suffix(32))
  }

  /// RFC 7638: SHA-256 of the required members in the order of their names, in base64url, 43 characters.
  public var thumbprint: String {
    let members = JSONText.object(["crv": "P-256", "kty": "EC", "x": x, "y": y])
    return Base64URL.encode(SHA256.hash(Array(members.utf8)))
  }

  /// The key as one that verifies ES256, named by its thumbprint.
  public var text: String {
    JSONText.object([
      "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": thumbprint, "x": x, "y": y,
    ])
  }
}
