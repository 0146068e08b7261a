import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport

@Suite("Client attestations, verified by PyJWT", .serialized, .timeLimit(.minutes(10)))
struct ClientAttestationTests {
  private static let issuer = "https://as.example.com"

  /// What an authorization server gets.
  private struct Call: Encodable {
    var attestation: String
    var proof: String
    var challenge: String?
    var dpop: [String]?
  }

  /// A JWT of an attested client, valid unless a test changes it.
  private struct Proof {
    var header: [String: Any] = ["typ": "oauth-client-attestation-pop+jwt", "alg": "ES256"]
    var claims: [String: Any] = ["aud": issuer, "iat": Timestamp.now().seconds]

    func text(by key: P256PrivateKey) throws -> String {
      var claims = claims
      claims["jti"] = Base64URL.encode(SecureRandom.bytes(16))
      let text = try [header, claims]
        .map { Base64URL.encode(Array(try JSONSerialization.data(withJSONObject: $0))) }.joined(separator: ".")
      return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
    }
  }

  /// Runs the verifier of the documentation unchanged.
  private func results(_ calls: [Call], of gate: RunningGate) async throws -> [[String: Any]] {
    let path = gate.folder + "/clients.py"
    try Guide.service("ClientAttestations").block("python").write(toFile: path, atomically: true, encoding: .utf8)
    let keys = "https://localhost:\(gate.port)/.well-known/sallyport/jwks.json"
    let input = try calls.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) + "\n" }.joined()
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("python3"), [path, keys, "sallyport", Self.issuer], input: Array(input.utf8),
      environment: ["SSL_CERT_FILE": gate.certificateAuthority], within: .seconds(30))
    #expect(exit == .code(0), "\(errors)")
    return try output.map { try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
  }

  @Test("The documented verifier accepts an attestation with its proof, and refuses each broken rule by its name")
  func verified() async throws {
    let configuration = GateConfiguration(sections: [
      "tokens: { audiences: [ledger], clients: [{ client_id: wallet, lifetime: 10m }] }"
    ])
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let key = try P256PrivateKey()
      func bought(_ body: String, count: UInt32) async throws -> [String: Any] {
        let nonce = try await visitor.challenge()
        let proof = try TokenProof(key: key, nonce: nonce, url: gate.tokenURL).text
        let response = try await visitor.token(device.headers(over: nonce, count: count), proof: proof, body: body)
        guard response.status == 200 else { throw Unexpected(response: response) }
        return try #require(JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
      }
      let attestation = try #require(try await bought("client_id=wallet", count: 1)["client_attestation"] as? String)
      let token = try #require(try await bought("audience=ledger", count: 2)["access_token"] as? String)
      let stranger = try P256PrivateKey()
      func call(by signer: P256PrivateKey? = nil, challenge: String? = nil, _ change: (inout Proof) -> Void = { _ in })
        throws -> Call
      {
        var proof = Proof()
        change(&proof)
        return Call(attestation: attestation, proof: try proof.text(by: signer ?? key), challenge: challenge)
      }
      let good = try call()
      let ahead = try call(challenge: "c-1") { $0.claims["challenge"] = "c-1" }
      var (unsigned, foreign) = (try call(), try call())
      unsigned.attestation = attestation[..<(attestation.lastIndex(of: ".") ?? attestation.endIndex)] + "."
      foreign.attestation = token
      let url = "\(Self.issuer)/token"
      var combined = try call()
      combined.dpop = ["POST", url]
      combined.proof = try TokenProof(key: key, url: url).text
      var other = combined
      other.proof = try TokenProof(key: stranger, url: url).text
      let results = try await results(
        [
          good, ahead, combined, good, unsigned, foreign, other, try call(by: stranger),
          try call(challenge: "c-2"), try call { $0.claims["aud"] = "https://other.example.com" },
          try call { $0.claims["aud"] = nil }, try call { $0.claims["iat"] = Timestamp.now().seconds - 90 },
          try call { $0.header["typ"] = "JWT" },
        ], of: gate)
      #expect(results[0]["client_id"] as? String == "wallet")
      #expect((results[0]["key"] as? [String: Any])?["d"] == nil)
      #expect(
        results.map { $0["refused"] as? String } == [
          nil, nil, nil, "the proof was used before", "InvalidSignatureError", "another type of JWT",
          "the DPoP proof is by another key", "InvalidSignatureError",
          "use_attestation_challenge: the proof has another challenge, or none", "InvalidAudienceError",
          "MissingRequiredClaimError", "the proof is too old", "another type of JWT",
        ])
      // Neither is taken for the other: a service that takes tokens refuses an attestation by its type.
      let refused = try await DocumentedTokenVerifier(gate: gate).refusals([
        ServiceCall(authorization: "DPoP \(attestation)", dpop: try TokenProof(key: key, url: url).text)
      ])
      #expect(refused == ["not an access token"])
    }
  }

  @Test("The lines of attest token are accepted with either proof, each with the server's value")
  func command() async throws {
    let configuration = GateConfiguration(sections: ["tokens: { clients: [{ client_id: wallet, lifetime: 10m }] }"])
    try await RunningGate.serving(configuration) { gate in
      var environment = [String: String?].gateless
      environment["XDG_DATA_HOME"] = gate.folder + "/device"
      let base = [
        "token", gate.url, "--authority", gate.folder, "--client-attestation", "wallet", "--challenge", "c-1",
      ]
      let url = "\(Self.issuer)/token"
      var calls: [Call] = []
      for (more, names) in [
        (["--issuer", Self.issuer], ["OAuth-Client-Attestation", "OAuth-Client-Attestation-PoP"]),
        (["--for", "POST \(url)"], ["OAuth-Client-Attestation", "DPoP"]),
      ] {
        let (exit, lines, errors) = try await ChildProcess.run(
          Places.product("attest"), base + more, environment: environment, within: .seconds(20))
        try #require(exit == .code(0) && lines.count == 2, "\(errors)")
        #expect(lines.map { String($0.prefix { $0 != ":" }) } == names)
        let values = lines.map { String($0.drop { $0 != " " }.dropFirst()) }
        calls.append(
          Call(
            attestation: values[0], proof: values[1], challenge: "c-1", dpop: names[1] == "DPoP" ? ["POST", url] : nil))
      }
      let results = try await results(calls, of: gate)
      #expect(results.map { $0["client_id"] as? String } == ["wallet", "wallet"], "\(results)")
      for wrong in [["--issuer", Self.issuer, "--for", "POST \(url)"], []] {
        let (exit, _, _) = try await ChildProcess.run(
          Places.product("attest"), base + wrong, environment: environment, within: .seconds(20))
        #expect(exit == .code(64))
      }
    }
  }
}
