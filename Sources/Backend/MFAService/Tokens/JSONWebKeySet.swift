internal import ByteCoding
internal import Crypto
internal import Foundation
internal import OIDCClient

/// The ES256 keys of a JWKS (RFC 7517).
struct JSONWebKeySet {
  struct Key: Codable {
    var kty: String
    var crv: String?
    var x: String?
    var y: String?
    var kid: String?
    var alg: String?
    var use: String?
    var key_ops: [String]?

    /// Whether the key may verify signatures: neither `use` nor `key_ops` excludes it (RFC 7517, sections 4.2 and 4.3).
    fileprivate var isForSignatures: Bool { use ?? "sig" == "sig" && key_ops?.contains("verify") ?? true }
  }

  let keys: [(id: String, key: P256.Signing.PublicKey)]

  struct Malformed: Error {
    let reason: String
  }

  /// Parses a JWKS. Skips keys of other kinds.
  ///
  /// - Throws: `Malformed` if the document is not a JWKS or has no ES256 key.
  init(json: [UInt8]) throws(Malformed) {
    struct Document: Decodable { let keys: [Key] }
    guard json.count <= 1 << 18, let document = try? ProviderJSON.decode(Document.self, from: json) else {
      throw Malformed(reason: "not a JSON object with keys")
    }
    keys = document.keys.compactMap { key in
      guard key.kty == "EC", key.crv == "P-256", key.alg ?? "ES256" == "ES256", key.isForSignatures,
        let id = key.kid, let x = key.x.flatMap({ Base64URL.decode($0) }), x.count == 32,
        let y = key.y.flatMap({ Base64URL.decode($0) }), y.count == 32,
        let point = try? P256.Signing.PublicKey(rawRepresentation: Data(x + y))
      else { return nil }
      return (id, point)
    }
    guard !keys.isEmpty else { throw Malformed(reason: "no ES256 key with a kid") }
  }
}
