internal import AttestGate
internal import ByteCoding
internal import Cryptography

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A DPoP proof (RFC 9449 section 4.2), parsed and not yet verified.
///
/// Only ES256 is accepted. The key must be on P-256, like every key of the gate.
struct DPoPProof: Sendable {
  /// The maximum number of bytes of a proof. Proofs of real clients have 400 to 600.
  static let longest = 4096
  /// The maximum distance between `iat` and the gate's clock, in either direction.
  ///
  /// The nonce limits the age of a proof, so this only finds a client that uses a proof of another time. Clocks of
  /// phones differ by minutes.
  static let freshness = Duration.seconds(300)

  /// The X9.62 form of the client's key.
  private let point: [UInt8]
  private let claims: Claims
  /// The text that the signature covers: header and claims as they were sent.
  private let signed: [UInt8]
  private let signature: [UInt8]

  /// Parses the value of a field `DPoP`.
  init(_ text: String) throws(DPoPRejection) {
    guard text.utf8.count <= Self.longest else { throw .tooLong(bytes: text.utf8.count) }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Substring.init)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]), let claims = Base64URL.decode(parts[1]),
      let signature = Base64URL.decode(parts[2])
    else { throw .notAToken }
    point = try Header(json: header).point
    self.claims = try Claims(json: claims)
    guard signature.count == 64 else { throw .malformedSignature }
    self.signature = signature
    signed = Array(text.utf8.dropLast(parts[2].utf8.count + 1))
  }

  /// Verifies the proof for one request, and returns the key that made it.
  ///
  /// - Parameters:
  ///   - uri: The URI of the request.
  ///   - nonce: The nonce that the request's assertion signs.
  func verify(method: String, uri: NormalizedURI, nonce: String, at now: Timestamp) throws(DPoPRejection) -> DPoPKey {
    guard claims.htm.hasSameBytes(as: method) else { throw .methodMismatch }
    guard NormalizedURI(claims.htu) == uri else { throw .uriMismatch }
    guard claims.nonce.hasSameBytes(as: nonce) else { throw .nonceMismatch }
    let age = Double(now.seconds) - claims.iat
    guard abs(age) <= Double(Self.freshness.components.seconds) else {
      throw .notFresh(seconds: Int64(max(-1e15, min(1e15, age))))
    }
    // Last, since it costs most: the key is made ready for one verification.
    guard let key = try? P256PublicKey(x963: point) else { throw .malformedKey }
    guard key.isValidES256Signature(signature, for: signed) else { throw .invalidSignature }
    return DPoPKey(key: JSONWebKey(key))
  }
}

/// A key whose possession a client has proved. Only `DPoPProof.verify` creates one.
struct DPoPKey: Sendable, Hashable {
  let key: JSONWebKey

  /// The JWK thumbprint (RFC 7638) in base64url, 43 characters.
  var thumbprint: String { key.thumbprint }

  fileprivate init(key: JSONWebKey) { self.key = key }
}

extension DPoPProof {
  /// The header of a proof.
  private struct Header {
    /// The X9.62 form of the key: 4, then x and y with 32 bytes each.
    let point: [UInt8]

    private struct Members: Decodable {
      let typ: String?
      let alg: String?
      let jwk: Key?

      struct Key: Decodable {
        let kty: String?
        let crv: String?
        let x: String?
        let y: String?
      }
    }

    /// The names of members that a proof must not have.
    private struct Presence: Decodable {
      let hasExtension: Bool
      let hasPrivatePart: Bool

      private enum Names: String, CodingKey { case crit, jwk, d }

      init(from decoder: any Decoder) throws {
        let header = try decoder.container(keyedBy: Names.self)
        hasExtension = header.contains(.crit)
        hasPrivatePart = (try? header.nestedContainer(keyedBy: Names.self, forKey: .jwk))?.contains(.d) ?? false
      }
    }

    init(json: [UInt8]) throws(DPoPRejection) {
      guard let members = DPoPProof.decode(Members.self, json), let presence = DPoPProof.decode(Presence.self, json)
      else { throw .malformedHeader }
      guard members.typ?.hasSameBytes(as: "dpop+jwt") == true else { throw .unexpectedType }
      guard members.alg?.hasSameBytes(as: "ES256") == true else { throw .unexpectedAlgorithm }
      guard !presence.hasExtension else { throw .unknownExtension }
      guard !presence.hasPrivatePart else { throw .privateKey }
      guard let key = members.jwk, key.kty?.hasSameBytes(as: "EC") == true,
        key.crv?.hasSameBytes(as: "P-256") == true,
        let x = key.x.flatMap({ Base64URL.decode($0) }), let y = key.y.flatMap({ Base64URL.decode($0) }),
        x.count == 32, y.count == 32
      else { throw .malformedKey }
      point = [4] + x + y
    }
  }

  /// The claims of a proof. Others are ignored.
  private struct Claims: Sendable {
    let htm: String
    let htu: String
    let iat: Double
    let nonce: String

    private struct Members: Decodable {
      let jti: String?
      let htm: String?
      let htu: String?
      let iat: Double?
      let nonce: String?
    }

    /// `jti` must be there, and is not remembered: the nonce is spent with the admission, so that no proof is used
    /// twice.
    init(json: [UInt8]) throws(DPoPRejection) {
      guard let members = DPoPProof.decode(Members.self, json) else { throw .malformedClaims }
      guard let jti = members.jti, !jti.isEmpty else { throw .missingClaim("jti") }
      guard let htm = members.htm else { throw .missingClaim("htm") }
      guard let htu = members.htu else { throw .missingClaim("htu") }
      guard let iat = members.iat else { throw .missingClaim("iat") }
      guard let nonce = members.nonce else { throw .missingClaim("nonce") }
      guard iat.isFinite else { throw .malformedClaims }
      (self.htm, self.htu, self.iat, self.nonce) = (htm, htu, iat, nonce)
    }
  }

  /// Decodes a JSON object whose members occur once each; `nil` for anything else.
  private static func decode<Value: Decodable>(_ type: Value.Type, _ json: [UInt8]) -> Value? {
    guard JSONGrammar.accepts(json, within: .request) else { return nil }
    return try? JSONDecoder().decode(type, from: Data(json))
  }
}
