public import ByteCoding
public import Foundation

/// A key pair on P-256 to which access tokens are bound (RFC 9449). Unlike the attested key it may sign anything.
///
/// On Apple's platforms, make one with `SecureEnclave.P256.Signing.PrivateKey` or `P256.Signing.PrivateKey`: the public
/// key is `publicKey.x963Representation`, and a signature is `signature(for: message).rawRepresentation`.
public protocol DPoPKey: Sendable {
  /// The public key in X9.62 form: 4, then x and y, 32 bytes each.
  var publicKey: [UInt8] { get }

  /// An ECDSA signature of `message`, which is hashed with SHA-256: r, then s, 32 bytes each.
  func signature(for message: [UInt8]) throws(KeyServiceError) -> [UInt8]
}

/// Proofs that the sender of an HTTP request has the key of its access token (RFC 9449 section 4).
public enum DPoPProof {
  /// The name of the header field with the proof.
  public static let headerName = "DPoP"

  /// Makes the proof for one request, to be sent once.
  ///
  /// - Parameters:
  ///   - url: The URL of the request. The proof contains it without query, fragment, user and password.
  ///   - nonce: The value that the server asked for, if any.
  ///   - accessToken: The token that the request carries, if any.
  ///   - now: The time by the client's clock.
  public static func make(
    _ method: String, _ url: URL, nonce: String? = nil, accessToken: String? = nil, key: some DPoPKey,
    at now: Timestamp = .now()
  ) throws(KeyServiceError) -> String {
    let point = key.publicKey
    guard point.count == 65, point.first == 4, let uri = target(of: url) else { throw .invalidInput }
    let jwk = JSONText.object([
      "kty": "EC", "crv": "P-256", "x": Base64URL.encode(point[1..<33]), "y": Base64URL.encode(point[33...]),
    ])
    var claims = #"{"jti":\#(JSONText.quote(ClientJWT.newID())),"htm":\#(JSONText.quote(method))"#
    claims += #","htu":\#(JSONText.quote(uri)),"iat":\#(now.seconds)"#
    if let nonce { claims += #","nonce":\#(JSONText.quote(nonce))"# }
    if let accessToken {
      claims += #","ath":\#(JSONText.quote(Base64URL.encode(Digest.sha256(Array(accessToken.utf8)))))"#
    }
    return try ClientJWT.signed(#"{"typ":"dpop+jwt","alg":"ES256","jwk":\#(jwk)}"#, claims + "}", by: key)
  }

  private static func target(of url: URL) -> String? {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true), parts.host != nil else { return nil }
    // A user and a password are no part of the URL of the request, but a secret.
    (parts.user, parts.password) = (nil, nil)
    (parts.query, parts.fragment) = (nil, nil)
    if parts.path.isEmpty { parts.path = "/" }
    return parts.url?.absoluteString
  }
}

/// JWTs that a key of the client signs.
enum ClientJWT {
  /// A value for `jti`: 16 random bytes in base64url.
  static func newID() -> String {
    var generator = SystemRandomNumberGenerator()
    return Base64URL.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  /// Signs JSON texts with ES256.
  static func signed(_ header: String, _ claims: String, by key: some DPoPKey) throws(KeyServiceError) -> String {
    let text = [header, claims].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
    let signature = try key.signature(for: Array(text.utf8))
    guard signature.count == 64 else { throw .systemFailure("the signature has \(signature.count) bytes, not 64") }
    return text + "." + Base64URL.encode(signature)
  }
}
