internal import ByteCoding
public import Foundation
internal import HTTPExchange

/// Gets the attestations by which this client authenticates (draft-ietf-oauth-attestation-based-client-auth).
public protocol ClientAttester: Sendable {
  /// Returns an attestation that is still valid, and its key.
  ///
  /// - Parameter isRenewed: Whether it must be another one than before: the provider refused that as too old.
  /// - Throws: `.attestation` if there is none to be had.
  func attestedClient(isRenewed: Bool) async throws(OIDCError) -> AttestedClient
}

/// An instance of a client that its attester vouches for: the attestation, and the key that it names.
public struct AttestedClient: Sendable, Hashable {
  /// The longest attestation, in bytes: it goes into a header field.
  public static let longest = 8192

  /// The attestation, a JWT.
  public let attestation: String
  /// The key of its `cnf`, which signs the proofs.
  public let key: DPoPKey
  /// The time at which it ends.
  public let expiresAt: Date

  /// Reads an attestation. Its signature is the provider's to verify.
  ///
  /// - Throws: `.attestation` if it is no such JWT, or is for another key or another client.
  public init(attestation: String, key: DPoPKey, clientID: String) throws(OIDCError) {
    guard attestation.utf8.count <= Self.longest, attestation.utf8.allSatisfy(Self.isOfToken) else {
      throw .attestation("it is no JWT of at most \(Self.longest) bytes")
    }
    let parts = attestation.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts.contains(""), let payload = Base64URL.decode(parts[1]),
      let claims = try? ProviderJSON.decode(Claims.self, ofToken: payload)
    else { throw .attestation("it is no signed JWT with an object of claims") }
    guard let subject = claims.subject.value, subject.isIdentical(to: clientID) else {
      throw .attestation("it is for \(ShownValue.quoted(claims.subject.value ?? "")), not for this client")
    }
    guard let end = claims.end.value, end.isFinite else { throw .attestation("it has no exp") }
    guard let x = claims.x?.value, let y = claims.y?.value, key.isKey(x: x, y: y) else {
      throw .attestation("it is for another key than the one that signs the proofs")
    }
    self.attestation = attestation
    self.key = key
    expiresAt = Date(timeIntervalSince1970: end)
  }

  private static func isOfToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-_.".utf8.contains(byte)
    }
  }

  private struct Claims: Decodable {
    let subject: Member<String>
    let end: Member<Double>
    let x: Member<String>?
    let y: Member<String>?

    init(from decoder: any Decoder) throws {
      let members = try ProviderMembers(from: decoder)
      subject = members.text("sub")
      end = members.number("exp")
      let key = members.members(of: "cnf")?.members(of: "jwk")
      x = key?.text("x")
      y = key?.text("y")
    }
  }

  /// The fields of one request: the attestation, and where no DPoP proof stands for it, the proof of its key.
  ///
  /// - Parameters:
  ///   - audience: The provider, by the name that it gives itself.
  ///   - challenge: What the provider asked for.
  func fields(
    proof: AttestationProof, audience: String, challenge: String?, jti: String, now: Date
  ) throws(OIDCError) -> [HTTPField] {
    let field = HTTPField("OAuth-Client-Attestation", attestation)
    guard proof != .dpop else { return [field] }
    let claims = ProofClaims(aud: audience, jti: jti, iat: Int(now.timeIntervalSince1970), challenge: challenge)
    return [field, HTTPField("OAuth-Client-Attestation-PoP", try key.token(header: ProofHeader(), payload: claims))]
  }

  private struct ProofHeader: Encodable {
    let typ = "oauth-client-attestation-pop+jwt"
    let alg = SignatureAlgorithm.es256.rawValue
    private enum CodingKeys: String, CodingKey { case typ, alg }
  }

  private struct ProofClaims: Encodable {
    let aud: String
    let jti: String
    let iat: Int
    let challenge: String?
  }
}

extension AttestedClient: CustomStringConvertible, CustomReflectable {
  /// The thumbprint of the key: the attestation stays out of logs.
  public var description: String { key.thumbprint }
  /// No members, for the same reason.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
