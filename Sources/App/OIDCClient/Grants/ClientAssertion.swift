internal import Foundation

/// A JWT by which a client proves at the token endpoint which client it is (RFC 7523, section 2.2; OpenID Connect Core 1.0,
/// section 9).
struct ClientAssertion: Encodable {
  static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
  /// The lifetime, in seconds: long enough for a slow network and clocks that differ a little.
  static let lifetime = 120

  let iss: String
  let sub: String
  let aud: String
  let jti: String
  let iat: Int
  let exp: Int

  /// The assertion of a client for `audience`. `jti` is a random text that is used once.
  init(clientID: String, audience: String, jti: String, now: Date) {
    iss = clientID
    sub = clientID
    aud = audience
    self.jti = jti
    iat = Int(now.timeIntervalSince1970)
    exp = iat + Self.lifetime
  }

  private struct Header: Encodable {
    let alg: String
    let kid: String?
    let typ = "JWT"
    private enum CodingKeys: String, CodingKey { case alg, kid, typ }
  }

  /// The signed assertion.
  func token(pem: String, keyID: String?, algorithm: SignatureAlgorithm? = nil) throws(OIDCError) -> String {
    let key = try SignedObject.Key(pem: pem, algorithm: algorithm)
    return try SignedObject.token(
      header: Header(alg: key.algorithm.rawValue, kid: keyID), payload: self, key: key)
  }
}
