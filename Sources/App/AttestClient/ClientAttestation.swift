public import ByteCoding

/// What an authorization server learns from the gate about this app: that it is a genuine instance, and that it holds a
/// key (draft-ietf-oauth-attestation-based-client-auth).
public struct ClientAttestation: Sendable, Hashable {
  /// The name of the header field with the attestation.
  public static let headerName = "OAuth-Client-Attestation"
  /// The name of the header field with the proof of its key.
  public static let proofHeaderName = "OAuth-Client-Attestation-PoP"

  /// The attestation, a JWT of the gate.
  public let text: String
  /// How long the attestation is valid after its issue.
  public let lifetime: Duration

  /// Creates an attestation, for tests of an app.
  public init(text: String, lifetime: Duration) {
    self.text = text
    self.lifetime = lifetime
  }

  /// The two header fields for one request to the authorization server. A server that reads DPoP proofs (method
  /// `attest_jwt_client_auth_dpop`) gets the first of them, and a `DPoPProof` by the same key instead of the second.
  ///
  /// - Parameters:
  ///   - issuer: The URL by which the authorization server names itself; at a resource server, its identifier.
  ///   - challenge: The value that the server gave, if any.
  ///   - key: The key for which the attestation was issued.
  public func fields(
    for issuer: String, challenge: String? = nil, key: some DPoPKey, at now: Timestamp = .now()
  ) throws(KeyServiceError) -> [HTTPField] {
    var claims = #"{"aud":\#(JSONText.quote(issuer)),"jti":\#(JSONText.quote(ClientJWT.newID())),"iat":\#(now.seconds)"#
    if let challenge { claims += #","challenge":\#(JSONText.quote(challenge))"# }
    let proof = try ClientJWT.signed(
      #"{"typ":"oauth-client-attestation-pop+jwt","alg":"ES256"}"#, claims + "}", by: key)
    return [HTTPField(Self.headerName, text), HTTPField(Self.proofHeaderName, proof)]
  }
}
