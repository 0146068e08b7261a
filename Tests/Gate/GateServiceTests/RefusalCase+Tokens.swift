import AttestGate
import Cryptography
import GateFixtures
import Testing
import Transport

extension RefusalCase {
  /// Returns an attempt by a registered device to get a token, after `change` has altered its proof and its body.
  private static func buying(
    body: String = "audience=ledger", enforcement: Gate.Enforcement = .enforce,
    _ change: @escaping @Sendable (inout ProofMint) throws -> Void
  ) -> @Sendable () async throws -> (service: ServiceBench, request: Request) {
    {
      let bench = try GateBench(enforcement: enforcement)
      let device = try await bench.registeredDevice()
      let nonce = try bench.nonce()
      var mint = try ProofMint(nonce: nonce.text, at: bench.clock.now)
      try change(&mint)
      let headers = try device.fields(over: nonce, count: 1)
      return (try ServiceBench(bench), .token(headers, proof: try mint.text, body: body))
    }
  }

  static let tokens = [
    RefusalCase(
      "a GET for a token", 405, "method_not_allowed", "Use POST here", step: "method",
      asking(.plain("GET", "/attest/token"))),
    RefusalCase(
      "a token request in JSON", 400, "malformed_form",
      "The body must be a form (application/x-www-form-urlencoded): audience=NAME", step: "form_type",
      asking(.plain("POST", "/attest/token", [("Content-Type", "application/json")], body: #"{"audience":"ledger"}"#))),
    RefusalCase(
      "a token request without an audience", 400, "malformed_form",
      "audience is missing, or client_id for a client attestation",
      step: "form_member",
      buying(body: "scope=x") { _ in }),
    RefusalCase(
      "a token request with two audiences", 400, "malformed_form", "The body has a member twice", step: "form_member",
      buying(body: "audience=ledger&audience=ledger") { _ in }),
    RefusalCase(
      "a token for an unknown audience", 403, "audience_refused", "The gate issues no tokens for this audience",
      step: "token_audience", buying(body: "audience=upstream") { _ in }),
    RefusalCase(
      "a token request without credentials", 401, "no_credentials",
      "No credentials: send X-App-Assert-KeyId, X-App-Assert-Data and X-App-Assert-Nonce", step: "no_credentials",
      asking(.token([], proof: "x", body: "audience=ledger"))),
    RefusalCase(
      "a proof that is not a JWT", 400, "dpop_malformed", "DPoP must be three parts in base64url", step: "dpop_form",
      buying { $0.alter = { _ in "x" } }),
    RefusalCase(
      "a proof without jti", 400, "dpop_malformed", "jti of DPoP is missing", step: "dpop_claim",
      buying { $0.claims["jti"] = nil }),
    RefusalCase(
      "an attestation for an unknown client", 403, "audience_refused",
      "The gate issues no attestations for this client_id", step: "token_client",
      buying(body: "client_id=Wallet") { _ in }),
    RefusalCase(
      "an attestation for a client of another app", 403, "audience_refused",
      "This app gets no attestations for this client_id", step: "token_client_app",
      buying(body: "client_id=other") { _ in }),
    RefusalCase(
      "a proof without a nonce", 400, "dpop_malformed", "nonce of DPoP is missing", step: "dpop_claim",
      buying { $0.claims["nonce"] = nil }),
    RefusalCase(
      "a proof for another URL", 400, "dpop_refused", "htu of DPoP must be the URL of this request", step: "dpop_uri",
      buying { $0.claims["htu"] = "\"https://other.example/attest/token\"" }),
    RefusalCase(
      "a proof by another key", 400, "dpop_refused", "DPoP is not signed by the key in its jwk",
      step: "dpop_signature", buying { $0.signer = try P256PrivateKey() }),
    RefusalCase(
      "a token from a gate that verifies nothing", 503, "tokens_unavailable",
      "The gate verifies no clients now, so it issues no tokens", step: "token_enforcement_off",
      buying(enforcement: .off) { _ in }),
  ]
}
