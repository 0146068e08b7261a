import ByteCoding
import Cryptography
import Foundation
import GRDB
import TestSupport
import Testing
import Transport

/// Runs the verifier of the documentation unchanged, with an independent JWT library.
struct DocumentedVerifier {
  let gate: RunningGate
  var audience: String?
  /// The required route; only with an audience.
  var route: String?

  static func text() throws -> String { try Guide.service("Identity").block("python") }

  /// Returns the verifier's result for each assertion: its claims as JSON, or `refused`.
  func verify(_ assertions: [String]) async throws -> [[String: Any]] {
    let path = gate.folder + "/identity.py"
    try Self.text().write(toFile: path, atomically: true, encoding: .utf8)
    let keys = "https://localhost:\(gate.port)/.well-known/sallyport/jwks.json"
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("python3"), [path, keys] + (audience.map { ["sallyport", $0] + (route.map { [$0] } ?? []) } ?? []),
      input: Array(assertions.map { $0 + "\n" }.joined().utf8),
      environment: ["SSL_CERT_FILE": gate.certificateAuthority], within: .seconds(30))
    #expect(exit == .code(0), "\(errors)")
    return try output.map { try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
  }

  func refusals(_ assertions: [String]) async throws -> [String?] {
    try await verify(assertions).map { $0["refused"] as? String }
  }
}

@Suite("Identity for the upstream", .serialized, .timeLimit(.minutes(10)))
struct IdentityTests {
  /// Runs a gate in front of a backend that records its input, and calls `body` with the assertion of a device's
  /// first socket.
  private func serving(_ body: (RunningGate, Witness, TestDevice, _ assertion: String) async throws -> Void)
    async throws
  {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      _ = try await visitor.open(device.headers(over: await visitor.challenge()))
      let head = try await witness.head(1)
      let line = try #require(head.first { $0.hasPrefix("X-Attest-Assertion: ") })
      try await body(gate, witness, device, String(line.dropFirst("X-Attest-Assertion: ".count)))
    }
  }

  @Test("E-031 The documented verifier accepts the assertion and reads the device's identity from it")
  func accepted() async throws {
    try await serving { gate, witness, device, assertion in
      let claims = try #require(try await DocumentedVerifier(gate: gate).verify([assertion]).first)
      let hash = Base64URL.encode(SHA256.hash(Base64.decode(device.keyID) ?? []))
      #expect(claims["sub"] as? String == hash)
      #expect(claims["app"] as? String == GateConfiguration.appID && claims["env"] as? String == "development")
      #expect(claims["method"] as? String == "app-attest" && claims["client_ip"] as? String == "127.0.0.1")
      let head = try await witness.head(1)
      #expect(head.contains("X-Attest-Key-Id: \(hash)"))
      #expect(head.contains("X-Request-Id: \(claims["sid"] as? String ?? "")"))
      let issued = try #require(claims["iat"] as? Int)
      #expect(claims["exp"] as? Int == issued + 60)
    }
  }

  @Test("The documented verifier refuses an assertion for another audience")
  func audience() async throws {
    try await serving { gate, _, _, assertion in
      let refusals = try await DocumentedVerifier(gate: gate, audience: "another audience").refusals([assertion])
      #expect(refusals == ["InvalidAudienceError"])
    }
  }

  @Test("The upstream of one route cannot use its assertions at the upstream of another")
  func routes() async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    var configuration = GateConfiguration(upstream: witness.url, routeExtras: ["audience: chat"])
    configuration.furtherRoutes = ["/game", "/api"].map { "{ path: \($0), upstream: \"\(witness.url)\" }" }
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      var assertions: [String] = []
      for (index, path) in ["/", "/game/eu", "/api"].enumerated() {
        let proof = try device.headers(over: await visitor.challenge(), count: UInt32(index + 1))
        _ = try await visitor.open(proof, target: path)
        let line = try await witness.head(index + 1).first { $0.hasPrefix("X-Attest-Assertion: ") }
        assertions.append(String(try #require(line).dropFirst("X-Attest-Assertion: ".count)))
      }
      func refusals(_ audience: String, _ route: String? = nil) async throws -> [String?] {
        try await DocumentedVerifier(gate: gate, audience: audience, route: route).refusals(assertions)
      }
      #expect(try await refusals("chat") == [nil, "InvalidAudienceError", "InvalidAudienceError"])
      #expect(try await refusals("sallyport-upstream") == ["InvalidAudienceError", nil, nil])
      #expect(
        try await refusals("sallyport-upstream", "/game") == ["InvalidAudienceError", nil, "InvalidTokenError"])
    }
  }

  @Test("The documented verifier refuses changed and unsigned assertions")
  func tampered() async throws {
    try await serving { gate, _, _, assertion in
      let parts = assertion.split(separator: ".").map(String.init)
      let claims = String(decoding: try #require(Base64URL.decode(parts[1])), as: UTF8.self)
      let altered = Base64URL.encode(Array(claims.replacing("development", with: "production").utf8))
      let unsigned = Base64URL.encode(Array(#"{"alg":"none","typ":"JWT"}"#.utf8))
      let signature = try #require(Base64URL.decode(parts[2]))
      let other = Base64URL.encode(Array(signature.dropLast()) + [(signature.last ?? 0) ^ 1])
      #expect(altered != parts[1])
      let refusals = try await DocumentedVerifier(gate: gate).refusals([
        [parts[0], altered, parts[2]].joined(separator: "."), [parts[0], parts[1], other].joined(separator: "."),
        unsigned + "." + parts[1] + ".", "not.a.token",
      ])
      #expect(refusals.prefix(2) == ["InvalidSignatureError", "InvalidSignatureError"])
      #expect(refusals.count == 4 && !refusals.contains(nil))
    }
  }

  @Test(
    "The documented verifier refuses an expired assertion, one of another issuer, and one without a subject")
  func expired() async throws {
    try await serving { gate, _, _, assertion in
      let now = Timestamp.now().seconds
      let key = try StateFile(of: gate).identityKey()
      func signed(_ change: (inout [String: Any]) -> Void) throws -> String { try resigned(assertion, by: key, change) }
      let refusals = try await DocumentedVerifier(gate: gate).refusals([
        signed { $0["exp"] = now - 10 }, signed { $0["iss"] = "another issuer" }, signed { $0["sub"] = nil },
        // The counterpart: the same signer, unchanged claims.
        signed { _ in },
      ])
      #expect(refusals == ["ExpiredSignatureError", "InvalidIssuerError", "MissingRequiredClaimError", nil])
    }
  }

  @Test("The documented verifier refuses signatures of another key, under a published or an unknown key id")
  func otherKey() async throws {
    try await serving { gate, _, _, assertion in
      let refusals = try await DocumentedVerifier(gate: gate).refusals([
        resigned(assertion, by: P256PrivateKey()) { _ in },
        resigned(assertion, by: P256PrivateKey(), kid: "unknown") { _ in },
      ])
      #expect(refusals == ["InvalidSignatureError", "PyJWKClientError"])
    }
  }

  @Test("The documented verifiers refuse whatever a stranger sends, and fetch the keys at most once in ten seconds")
  func strangers() async throws {
    try await Places.withTemporaryFolder { folder in
      for name in ["Identity", "Tokens"] {
        try Guide.service(name).block("python").write(
          toFile: folder + "/\(name.lowercased()).py", atomically: true, encoding: .utf8)
      }
      // Debian's PyJWT, and that of a Python without Debian's packages if it is there: `pip install pyjwt[crypto]`.
      var tested = 0
      for python in ["/usr/bin/python3", "/usr/local/bin/python3"] where FileManager.default.fileExists(atPath: python)
      {
        let (exit, _, _) = try await ChildProcess.run(python, ["-c", "import cryptography, jwt"])
        guard exit == .code(0) else { continue }
        let (_, output, errors) = try await ChildProcess.run(
          python, [PythonProgram.verifiers.path, folder + "/identity.py", folder + "/tokens.py"],
          environment: ["PYTHONDONTWRITEBYTECODE": "1"], within: .seconds(60))
        let result = try JSON.object(try #require(output.first, "\(errors)"))
        #expect(result["faults"]?.list == [], "\(python), PyJWT \(result["pyjwt"]?.text ?? "")")
        #expect(result["cases"]?.number ?? 0 >= 400)
        tested += 1
      }
      #expect(tested > 0)
    }
  }

  @Test("Gates that restart, or share a store, sign with the same key")
  func restart() async throws {
    try await Places.withTemporaryFolder { folder in
      var sets: [String] = []
      for _ in 0..<2 {
        let gate = try await RunningGate(in: folder)
        defer { gate.process.kill() }
        let response = try await Visitor(gate).send("GET", "/.well-known/sallyport/jwks.json")
        sets.append(String(decoding: response.body, as: UTF8.self))
      }
      #expect(sets[0] == sets[1] && sets[0].contains("\"kid\""))
    }
  }

  /// Returns `assertion` with changed claims, signed by `key`.
  private func resigned(
    _ assertion: String, by key: P256PrivateKey, kid: String? = nil, _ change: (inout [String: Any]) -> Void
  ) throws -> String {
    let parts = assertion.split(separator: ".").map { Base64URL.decode($0).map { Data($0) } ?? Data() }
    var header = try #require(JSONSerialization.jsonObject(with: parts[0]) as? [String: Any])
    var claims = try #require(JSONSerialization.jsonObject(with: parts[1]) as? [String: Any])
    if let kid { header["kid"] = kid }
    change(&claims)
    let text = try [header, claims].map { Base64URL.encode(Array(try JSONSerialization.data(withJSONObject: $0))) }
      .joined(separator: ".")
    return text + "." + Base64URL.encode(try key.es256Signature(for: Array(text.utf8)))
  }
}

extension StateFile {
  /// Returns the identity signing key of the gate.
  func identityKey() throws -> P256PrivateKey {
    let data = try database.read {
      try Data.fetchOne($0, sql: "SELECT private_key FROM identity_keys ORDER BY position LIMIT 1")
    }
    return try P256PrivateKey(pkcs8DER: Array(try #require(data)))
  }
}
