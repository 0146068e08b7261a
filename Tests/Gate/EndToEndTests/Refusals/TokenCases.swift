import Cryptography
import Transport

extension RefusalCase {
  private static let configuration = GateConfiguration(sections: ["tokens: { audiences: [ledger] }"])

  /// A token request with a valid assertion, whose proof and body a case changes.
  private static func token(
    _ description: String, _ status: Int, _ code: String, _ step: String, _ text: String,
    enforcement: String = "enforce", body: String = "audience=ledger",
    change: @escaping @Sendable (TokenProof) -> TokenProof? = { $0 }
  ) -> RefusalCase {
    var configuration = configuration
    configuration.enforcement = enforcement
    return RefusalCase(description, status, code, step, text, configuration: configuration) {
      let device = try TestDevice()
      let nonce = try await $0.challenge()
      let proof = TokenProof(key: try P256PrivateKey(), nonce: nonce, url: $0.gate.tokenURL)
      return try await $0.token(device.headers(over: nonce), proof: try change(proof)?.text, body: body)
    }
  }

  static let tokens: [RefusalCase] = [
    RefusalCase(
      "a token of a gate without tokens", 404, "not_found", "path", "There is nothing at this path"
    ) { try await $0.send("POST", "/attest/token") },
    token(
      "no audience", 400, "malformed_form", "form_member",
      "audience is missing, or client_id for a client attestation", body: "scope=x"),
    token(
      "an unknown audience", 403, "audience_refused", "token_audience",
      "The gate issues no tokens for this audience", body: "audience=sallyport-upstream"),
    token("no proof", 400, "dpop_malformed", "dpop_missing", "DPoP is missing") { _ in nil },
    token("an unsigned proof", 400, "dpop_malformed", "dpop_algorithm", "alg of DPoP must be ES256") {
      var proof = $0
      proof.algorithm = "none"
      return proof
    },
    token("a proof for another method", 400, "dpop_refused", "dpop_method", "htm of DPoP must be POST") {
      var proof = $0
      proof.method = "GET"
      return proof
    },
    token("an unregistered key", 401, "key_refused", "key_unknown", badKey),
    token(
      "a gate that verifies nothing", 503, "tokens_unavailable", "token_enforcement_off",
      "The gate verifies no clients now, so it issues no tokens", enforcement: "off"),
  ]
}
