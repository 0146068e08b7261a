import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport

/// A request to a service that accepts tokens of the gate.
struct ServiceCall: Encodable {
  var authorization: String
  var dpop: String
  var method = "GET"
  var url = "https://api.example.com/v1/items?page=2"
}

/// Runs the verifier of the documentation unchanged, with an independent JWT library.
struct DocumentedTokenVerifier {
  let gate: RunningGate
  var audience = "ledger"

  /// Returns the verifier's result for each call, in one process: its claims, or `refused` with the reason.
  func verify(_ calls: [ServiceCall]) async throws -> [[String: Any]] {
    let path = gate.folder + "/tokens.py"
    try Guide.service("Tokens").block("python").write(toFile: path, atomically: true, encoding: .utf8)
    let keys = "https://localhost:\(gate.port)/.well-known/sallyport/jwks.json"
    let input = try calls.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) + "\n" }.joined()
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("python3"), [path, keys, "sallyport", audience], input: Array(input.utf8),
      environment: ["SSL_CERT_FILE": gate.certificateAuthority], within: .seconds(30))
    #expect(exit == .code(0), "\(errors)")
    return try output.map { try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
  }

  func refusals(_ calls: [ServiceCall]) async throws -> [String?] {
    try await verify(calls).map { $0["refused"] as? String }
  }
}

@Suite("Tokens, verified by PyJWT", .serialized, .timeLimit(.minutes(10)))
struct TokenTests {
  private static let configuration = GateConfiguration(sections: ["tokens: { audiences: [ledger, other] }"])

  /// Returns a token for `device`.
  private func token(
    _ visitor: Visitor, _ device: TestDevice, count: UInt32 = 1, key: P256PrivateKey, body: String = "audience=ledger"
  ) async throws -> String {
    let nonce = try await visitor.challenge()
    let proof = try TokenProof(key: key, nonce: nonce, url: visitor.gate.tokenURL).text
    let response = try await visitor.token(device.headers(over: nonce, count: count), proof: proof, body: body)
    guard response.status == 200 else { throw Unexpected(response: response) }
    let answer = try #require(JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    #expect(answer["token_type"] as? String == "DPoP" && answer["expires_in"] as? Int == 300)
    return try #require(answer["access_token"] as? String)
  }

  /// Returns a call with `token` and a proof that `change` alters.
  private func call(
    _ token: String, _ key: P256PrivateKey, _ change: (inout TokenProof) -> Void = { _ in }
  ) throws -> ServiceCall {
    var proof = TokenProof(key: key, url: "https://api.example.com/v1/items")
    proof.method = "GET"
    proof.accessToken = token
    change(&proof)
    return ServiceCall(authorization: "DPoP \(token)", dpop: try proof.text)
  }

  @Test("The documented verifier accepts a token with its proof, and refuses it in every other way")
  func verified() async throws {
    try await RunningGate.serving(Self.configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let key = try P256PrivateKey()
      let token = try await token(visitor, device, key: key)
      let good = try call(token, key)
      let claims = try #require(try await DocumentedTokenVerifier(gate: gate).verify([good]).first)
      #expect(claims["sub"] as? String == Base64URL.encode(SHA256.hash(Base64.decode(device.keyID) ?? [])))
      #expect(claims["app"] as? String == GateConfiguration.appID && claims["aud"] as? String == "ledger")
      let old = try resigned(token, by: StateFile(of: gate).identityKey()) { $0["exp"] = Timestamp.now().seconds - 10 }
      let forged = try resigned(token, by: P256PrivateKey()) { _ in }
      let identity = try await identity(visitor, device)
      var (bearer, bare, post, elsewhere) = (try call(token, key), good, try call(token, key), try call(token, key))
      bearer.authorization = "Bearer \(token)"
      bare.dpop = ""
      post.method = "POST"
      elsewhere.url = "https://api.example.com/v1/other"
      let refusals = try await DocumentedTokenVerifier(gate: gate).refusals([
        good, good, bare, bearer, post, elsewhere, try call(token, P256PrivateKey()),
        try call(token, key) { $0.accessToken = "another" }, try call(token, key) { $0.accessToken = nil },
        try call(token, key) { $0.issuedAt -= 61 }, try call(old, key), try call(forged, key), try call(identity, key),
        try call(token, key),
      ])
      #expect(
        refusals == [
          nil, "the proof was used before", "DecodeError", "not a DPoP token", "the proof is for another request",
          "the proof is for another request", "the token is bound to another key", "the proof is for another token",
          "MissingRequiredClaimError", "the proof is too old", "ExpiredSignatureError", "InvalidSignatureError",
          "not an access token", nil,
        ])
    }
  }

  @Test("A token for one audience is refused by the verifier of another")
  func audiences() async throws {
    try await RunningGate.serving(Self.configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let key = try P256PrivateKey()
      let ledger = try call(try await token(visitor, device, key: key), key)
      let other = try call(try await token(visitor, device, count: 2, key: key, body: "audience=other"), key)
      func refusals(_ audience: String) async throws -> [String?] {
        try await DocumentedTokenVerifier(gate: gate, audience: audience).refusals([ledger, other])
      }
      #expect(try await refusals("ledger") == [nil, "InvalidAudienceError"])
      #expect(try await refusals("other") == ["InvalidAudienceError", nil])
      #expect(try await refusals("sallyport-upstream") == ["InvalidAudienceError", "InvalidAudienceError"])
    }
  }

  @Test("The documented verifier of identity assertions refuses a token")
  func notAnAssertion() async throws {
    try await RunningGate.serving(Self.configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let token = try await token(visitor, device, key: P256PrivateKey())
      #expect(try await DocumentedVerifier(gate: gate).refusals([token]) == ["InvalidAudienceError"])
    }
  }

  @Test("A revoked key keeps its token until the end, and gets no other")
  func revoked() async throws {
    try await Places.withTemporaryFolder { folder in
      var configuration = Self.configuration
      configuration.sections.append("admin: { listen: \"unix:\(folder)/admin.sock\" }")
      let gate = try await RunningGate(configuration, in: folder)
      defer { gate.process.kill() }
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let key = try P256PrivateKey()
      let token = try await token(visitor, device, key: key)
      let name = Base64URL.encode(SHA256.hash(Base64.decode(device.keyID) ?? []))
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"), ["keys", "revoke", "-c", folder + "/gate.yaml", "--", name],
        environment: .gateless, within: .seconds(20))
      #expect(exit == .code(0), "\(errors)")
      #expect(try await DocumentedTokenVerifier(gate: gate).refusals([call(token, key)]) == [nil])
      let nonce = try await visitor.challenge()
      let proof = try TokenProof(key: key, nonce: nonce, url: gate.tokenURL).text
      let response = try await visitor.token(device.headers(over: nonce, count: 2), proof: proof)
      #expect(response.status == 403 && response.headers.first("X-Attest-Error") == "key_revoked")
    }
  }

  @Test("An Android device gets a token in the same way, with what its attestation says")
  func android() async throws {
    var configuration = Self.configuration
    configuration.android = AndroidConfiguration()
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredAndroidDevice()
      let key = try P256PrivateKey()
      let nonce = try await visitor.challenge()
      let proof = try TokenProof(key: key, nonce: nonce, url: gate.tokenURL).text
      let response = try await visitor.token(device.headers(over: nonce), proof: proof)
      guard response.status == 200 else { throw Unexpected(response: response) }
      let answer = try #require(JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
      let token = try #require(answer["access_token"] as? String)
      let claims = try #require(try await DocumentedTokenVerifier(gate: gate).verify([call(token, key)]).first)
      #expect(claims["method"] as? String == "android-key" && claims["app"] as? String == AndroidMint.package)
      #expect(claims["security_level"] as? String == "tee" && claims["counter"] == nil)
    }
  }

  @Test("The command attest token prints a token, or the two headers of a request that the verifier accepts")
  func command() async throws {
    try await RunningGate.serving(Self.configuration) { gate in
      func attest(_ arguments: String...) async throws -> (ChildProcess.Exit, [String], [String]) {
        var environment = [String: String?].gateless
        environment["XDG_DATA_HOME"] = gate.folder + "/device"
        return try await ChildProcess.run(
          Places.product("attest"), ["token", gate.url, "--authority", gate.folder] + arguments,
          environment: environment, within: .seconds(20))
      }
      let (exit, lines, errors) = try await attest(
        "--audience", "ledger", "--for", "GET https://api.example.com/v1/items?page=2")
      #expect(exit == .code(0) && lines.count == 2, "\(errors)")
      let (names, values) = (
        lines.map { $0.prefix { $0 != ":" } }, lines.map { String($0.drop { $0 != " " }.dropFirst()) }
      )
      #expect(names == ["Authorization", "DPoP"])
      let call = ServiceCall(authorization: values[0], dpop: values[1])
      #expect(try await DocumentedTokenVerifier(gate: gate).refusals([call]) == [nil])

      let plain = try await attest("--audience", "ledger")
      #expect(plain.0 == .code(0) && plain.1.count == 1 && plain.1[0].split(separator: ".").count == 3)
      let refused = try await attest("--audience", "nobody")
      #expect(refused.0 == .code(77) && refused.2.joined().contains("audience_refused"), "\(refused.2)")
      let unusable = try await attest("--audience", "ledger", "--for", "https://api.example.com/")
      #expect(unusable.0 == .code(64) && unusable.2.joined().contains("hint:"), "\(unusable.2)")
      let secret = try await attest("--audience", "ledger", "--for", "GET https://u:p@api.example.com/")
      #expect(secret.0 == .code(64) && secret.2.joined().contains("without user and password"), "\(secret.2)")

      // A key that others can read is not used.
      let key = gate.folder + "/shared.pem"
      #expect(try await attest("--audience", "ledger", "--key", key).0 == .code(0))
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
      let shared = try await attest("--audience", "ledger", "--key", key)
      #expect(
        shared.0 == .code(65) && shared.1.isEmpty && shared.2.joined().contains("group or others can read"),
        "\(shared.2)")
    }
  }

  /// Returns an identity assertion for `device`.
  private func identity(_ visitor: Visitor, _ device: TestDevice) async throws -> String {
    let headers = try device.headers(over: await visitor.challenge(), count: 2)
    return try #require(try await visitor.send("GET", "/attest/verify", headers).headers.first("X-Attest-Assertion"))
  }

  /// Returns `token` with changed claims, signed by `key`.
  private func resigned(
    _ token: String, by key: P256PrivateKey, _ change: (inout [String: Any]) -> Void
  ) throws -> String {
    let parts = token.split(separator: ".").map(String.init)
    let claims = try #require(Base64URL.decode(parts[1]))
    var object = try #require(JSONSerialization.jsonObject(with: Data(claims)) as? [String: Any])
    change(&object)
    let text = parts[0] + "." + Base64URL.encode(Array(try JSONSerialization.data(withJSONObject: object)))
    return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
  }
}
