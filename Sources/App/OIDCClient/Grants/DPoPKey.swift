internal import ByteCoding
internal import Crypto
public import Foundation

/// A P-256 key that tokens are bound to, so that a stolen token is of no use without it (RFC 9449).
public struct DPoPKey: Sendable, Hashable {
  private let key: P256.Signing.PrivateKey

  /// Makes a key.
  public init() { key = P256.Signing.PrivateKey() }

  /// The key whose 32 bytes were stored; `nil` if they are none.
  public init?(bytes: [UInt8]) {
    guard let key = try? P256.Signing.PrivateKey(rawRepresentation: bytes) else { return nil }
    self.key = key
  }

  /// The key of a PEM text (PKCS #8, or SEC 1); `nil` if that has no private key on P-256.
  public init?(pem: String) {
    guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else { return nil }
    self.key = key
  }

  /// The 32 secret bytes, for a store that encrypts them.
  public var bytes: [UInt8] { Array(key.rawRepresentation) }

  /// The thumbprint of the public key, in base64url (RFC 7638): what a bound token has as `cnf.jkt`.
  public var thumbprint: String {
    let (x, y) = coordinates
    // The members in the order of their names, without spaces.
    let text = #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#
    return Base64URL.encode(Array(SHA256.hash(data: Array(text.utf8))))
  }

  /// A proof for one request (section 4.2).
  ///
  /// - Parameters:
  ///   - url: Where the request goes. Query, fragment, user and password are left out.
  ///   - accessToken: The token that the request carries; `nil` at the token endpoint.
  ///   - nonce: What the server asked for.
  ///   - jti: A random text that is used once.
  public func proof(
    method: String, url: URL, accessToken: String? = nil, nonce: String? = nil, jti: String, now: Date
  ) throws(OIDCError) -> String {
    let (x, y) = coordinates
    var target = URLComponents(url: url, resolvingAgainstBaseURL: true)
    // A user and a password are no part of the URL of the request, but a secret.
    target?.user = nil
    target?.password = nil
    target?.query = nil
    target?.fragment = nil
    let payload = Payload(
      jti: jti, htm: method, htu: target?.string ?? url.absoluteString, iat: Int(now.timeIntervalSince1970),
      ath: accessToken.map { Base64URL.encode(Array(SHA256.hash(data: Array($0.utf8)))) }, nonce: nonce)
    return try token(header: Header(jwk: .init(x: x, y: y)), payload: payload)
  }

  /// A JWT by this key with ES256.
  func token(header: some Encodable, payload: some Encodable) throws(OIDCError) -> String {
    try SignedObject.token(header: header, payload: payload, key: .p256(key))
  }

  /// Whether the public key has the coordinates `x` and `y`, in base64url.
  func isKey(x: String, y: String) -> Bool {
    let own = coordinates
    return own.x.utf8.elementsEqual(x.utf8) && own.y.utf8.elementsEqual(y.utf8)
  }

  var coordinates: (x: String, y: String) {
    let point = Array(key.publicKey.rawRepresentation)
    return (Base64URL.encode(Array(point[..<32])), Base64URL.encode(Array(point[32...])))
  }

  private struct Header: Encodable {
    struct PublicKey: Encodable {
      let kty = "EC"
      let crv = "P-256"
      let x: String
      let y: String
      private enum CodingKeys: String, CodingKey { case kty, crv, x, y }
    }

    let typ = "dpop+jwt"
    let alg = SignatureAlgorithm.es256.rawValue
    let jwk: PublicKey
    private enum CodingKeys: String, CodingKey { case typ, alg, jwk }
  }

  private struct Payload: Encodable {
    let jti: String
    let htm: String
    let htu: String
    let iat: Int
    let ath: String?
    let nonce: String?
  }

  public static func == (first: DPoPKey, second: DPoPKey) -> Bool { first.bytes == second.bytes }
  public func hash(into hasher: inout Hasher) { hasher.combine(thumbprint) }
}

extension DPoPKey: CustomStringConvertible, CustomReflectable {
  /// The thumbprint.
  public var description: String { thumbprint }
  /// No members: the key stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
