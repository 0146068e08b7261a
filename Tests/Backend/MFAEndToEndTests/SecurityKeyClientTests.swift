import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import TestSupport
import Testing

/// Libraries of security keys that others wrote.
private let clientLibraries = PythonPackages(
  name: "webauthn-mfa", packages: ["fido2==1.2.0", "soft-webauthn==0.1.4", "pyjwt>=2,<3", "cryptography>=42"],
  modules: "import fido2.client, soft_webauthn, jwt")

@Suite("Independent security key clients", .serialized, .timeLimit(.minutes(10)))
struct SecurityKeyClientTests {
  @Test(
    "A-223 A-224 python-fido2 with each algorithm and soft-webauthn register with the real server and sign in",
    .enabled("they cannot be installed: that needs python3-venv and PyPI") { await clientLibraries.arePresent() })
  func clients() async throws {
    let gate = try TestGate(clock: .system)
    try await Places.withTemporaryFolder { folder in
      try gate.privateKeyPEM.write(toFile: folder + "/gate.pem", atomically: true, encoding: .utf8)
      let backend = try await BackendProcess(
        ["--ephemeral", "--listen", "127.0.0.1:0", "--webauthn-rp-id", "example.org"]
          + ["--webauthn-origins", "https://example.org,https://login.example.org"] + BackendProcess.trusting(gate))
      defer { backend.process.kill() }
      let port = try #require(backend.port)
      let run = try await ChildProcess.run(
        clientLibraries.python,
        [
          ProjectFile.path("Tests/Backend/Programs/security_keys.py"), "http://127.0.0.1:\(port)/api/v1",
          folder + "/gate.pem", "example.org",
          "https://login.example.org",
        ], within: .seconds(120))
      #expect(run.exit == .code(0), "\(run.errors.joined(separator: "\n"))")
      #expect(
        run.output == [
          "python-fido2 ES256 -7", "python-fido2 EdDSA -8", "python-fido2 RS256 -257", "soft-webauthn ES256 -7",
          "excluded", "refused elsewhere",
        ])
      #expect(try await backend.stop() == .code(0))
    }
  }

  @Test("B-085 a backend without a relying party answers that security keys are unavailable")
  func off() async throws {
    let gate = try TestGate(clock: .system)
    let backend = try await BackendProcess(
      ["--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate))
    defer { backend.process.kill() }
    let port = try #require(backend.port)
    let phone = TestPhone()
    func ask(_ path: String, _ body: JSONValue, token: String? = nil) async throws -> CurlAnswer {
      try await curl(
        "POST", "http://127.0.0.1:\(port)/api/v1\(path)", body, token: token,
        ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: phone.app))"])
    }
    _ = try await ask("/mfa/enroll", phone.enrolment())
    let challenge = try await ask("/auth/initiate", phone.naming)
    let session = try await ask(
      "/auth/verify-signature",
      phone.naming.with([
        "challengeId": challenge["challengeId"] ?? nil,
        "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
      ]))
    let answer = try await ask(
      "/auth/webauthn/registration/options", [:], token: try #require(session["token"]?.text, "\(session.text)"))
    #expect(answer.status == 503 && answer["code"] == "unavailable", "\(answer.text)")
  }
}
