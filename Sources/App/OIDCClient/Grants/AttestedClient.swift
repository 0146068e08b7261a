internal import ByteCoding
public import Foundation
internal import Wire

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
  /// - Parameter now: The time, which may differ from that of the attester's clock by five minutes.
  /// - Throws: `.attestation` if it is no such JWT, has ended, or is for another key or another client.
  public init(attestation: String, key: DPoPKey, clientID: String, now: Date) throws(OIDCError) {
    guard attestation.utf8.count <= Self.longest, attestation.utf8.allSatisfy(Self.isOfToken) else {
      throw .attestation("it is no JWT of at most \(Self.longest) bytes")
    }
    let parts = attestation.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts.contains(""), let payload = Base64URL.decode(parts[1]),
      let claims = try? ProviderJSON.decode(AttestationClaims.self, ofToken: payload)
    else { throw .attestation("it is no signed JWT with an object of claims") }
    guard let protected = Base64URL.decode(parts[0]),
      let header = try? ProviderJSON.decode(AttestationHeader.self, ofToken: protected)
    else { throw .attestation("its header is no JSON object") }
    try header.judge()
    expiresAt = try claims.judge(key: key, clientID: clientID, now: now)
    self.attestation = attestation
    self.key = key
  }

  private static func isOfToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-_.".utf8.contains(byte)
    }
  }

  /// The fields of one request: the attestation, and where no DPoP proof stands for it, the proof of its key.
  ///
  /// - Parameters:
  ///   - audience: The issuer, which a proof of its own is for; `nil` if it is not known.
  ///   - challenge: What the provider asked for.
  func fields(
    proof: AttestationProof, audience: String?, challenge: String?, jti: String, now: Date
  ) throws(OIDCError) -> [HTTPField] {
    let field = HTTPField("OAuth-Client-Attestation", attestation)
    guard proof != .dpop else { return [field] }
    guard let audience else { throw .attestation("its proof needs the issuer of the provider") }
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
