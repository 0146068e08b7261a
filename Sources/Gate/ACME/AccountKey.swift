internal import ByteCoding
public import Cryptography

/// The key of an account at an ACME server. It signs every request (RFC 8555 section 6.2).
public struct AccountKey: Sendable {
  private let key: P256PrivateKey

  /// Makes a new key.
  public init() throws(CryptographyError) { key = try P256PrivateKey() }

  /// Reads a key in PKCS #8, not encrypted.
  public init(pem: String) throws(CryptographyError) { key = try P256PrivateKey(pkcs8PEM: pem) }

  /// The key in PKCS #8 without encryption. A secret.
  public var pem: String {
    get throws(CryptographyError) { try key.pkcs8PEM }
  }

  /// The public key.
  public var webKey: JSONWebKey { JSONWebKey(x963: key.publicKey.x963) }

  /// The text that proves, at the place of a challenge, that this account asked for it (RFC 8555 section 8.1).
  public func keyAuthorization(for token: String) -> String { "\(token).\(webKey.thumbprint)" }

  /// Returns a flattened JWS of `payload` with ES256 (RFC 7515 section 7.2.2).
  ///
  /// - Parameters:
  ///   - payload: `nil` for an empty payload, which asks for a resource (RFC 8555 section 6.3).
  ///   - account: The URL of the account; `nil` puts the public key into the header, for a request that makes one.
  func signed(
    _ payload: String?, account: String?, nonce: String, url: String
  ) throws(CryptographyError) -> [UInt8] {
    let signer = account.map { #""kid":\#(JSONText.quote($0))"# } ?? #""jwk":\#(webKey.json)"#
    let header = #"{"alg":"ES256",\#(signer),"nonce":\#(JSONText.quote(nonce)),"url":\#(JSONText.quote(url))}"#
    return try FlattenedJWS.encoded(header: header, payload: payload ?? "") { input throws(CryptographyError) in
      try key.es256Signature(for: input)
    }
  }
}

/// A public key on P-256 as JSON (RFC 7517, RFC 7518 section 6.2).
public struct JSONWebKey: Sendable, Hashable {
  /// The members that a thumbprint covers, in the order of RFC 7638 section 3.2, without blanks.
  public let json: String

  /// Creates the form of the uncompressed point `x963`: 0x04, x, y; 65 bytes.
  public init(x963: [UInt8]) {
    let (x, y) = (x963.dropFirst().prefix(32), x963.suffix(32))
    json = #"{"crv":"P-256","kty":"EC","x":"\#(Base64URL.encode(x))","y":"\#(Base64URL.encode(y))"}"#
  }

  /// The base64url of the SHA-256 digest of the key (RFC 7638).
  public var thumbprint: String { Base64URL.encode(SHA256.hash(Array(json.utf8))) }
}

/// A key that an authority gave to a customer, to connect the ACME account with the customer's own (RFC 8555 section
/// 7.3.4).
public struct ExternalAccountBinding: Sendable, Hashable {
  /// The name of the key at the authority.
  public let keyID: String
  private let key: [UInt8]

  /// Creates a binding.
  ///
  /// - Parameter key: The key, as the authority shows it: base64url, with or without padding. `nil` is returned for
  ///   other texts and for an empty one.
  public init?(keyID: String, key: String) {
    let digits = key.replacing("=", with: "").replacing("+", with: "-").replacing("/", with: "_")
    guard let bytes = Base64URL.decode(digits), !bytes.isEmpty else { return nil }
    self.keyID = keyID
    self.key = bytes
  }

  /// Returns the JWS with HS256 over the account's public key, for a new account at `url`.
  func signed(_ account: JSONWebKey, url: String) -> String {
    let header = #"{"alg":"HS256","kid":\#(JSONText.quote(keyID)),"url":\#(JSONText.quote(url))}"#
    let bytes = FlattenedJWS.encoded(header: header, payload: account.json) { HMACSHA256.authenticate($0, key: key) }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension ExternalAccountBinding: CustomStringConvertible, CustomReflectable {
  /// The name of the key. The key itself does not appear in logs.
  public var description: String { keyID }
  public var customMirror: Mirror { Mirror(self, children: ["keyID": keyID]) }
}

private enum FlattenedJWS {
  /// - Parameter sign: Returns the signature of the bytes that RFC 7515 section 5.1 says.
  static func encoded<Failure: Error>(
    header: String, payload: String, sign: ([UInt8]) throws(Failure) -> [UInt8]
  ) throws(Failure) -> [UInt8] {
    let (header, payload) = (Base64URL.encode(Array(header.utf8)), Base64URL.encode(Array(payload.utf8)))
    let signature = Base64URL.encode(try sign(Array("\(header).\(payload)".utf8)))
    return Array(#"{"protected":"\#(header)","payload":"\#(payload)","signature":"\#(signature)"}"#.utf8)
  }
}
