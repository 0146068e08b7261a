import ByteCoding
import Foundation
import MFAFixtures
import TestSupport
import Testing

/// Schemathesis, which generates requests from an OpenAPI document.
private let schemathesis = PythonPackages(
  name: "schemathesis-mfa", packages: ["schemathesis>=4,<5", "pyjwt", "cryptography"],
  modules: "import schemathesis.cli, jwt, cryptography")

@Suite("OpenAPI document under generated requests", .serialized, .timeLimit(.minutes(10)))
struct SchemathesisTests {
  @Test(
    "A-140 answers to Schemathesis have a described status, type and body, and none has status 500",
    .enabled("schemathesis cannot be installed: it needs python3-venv and PyPI") { await schemathesis.arePresent() })
  func generatedRequests() async throws {
    try await TestBackend.with(policy: .withSecurityKeys(), provider: TestProvider()) { backend in
      let phone = TestPhone()
      let (token, _) = try await backend.setUp(phone)
      try await Places.withTemporaryFolder { folder in
        try backend.gate.privateKeyPEM.write(toFile: folder + "/gate.pem", atomically: true, encoding: .utf8)
        let (exit, output, errors) = try await ChildProcess.run(
          schemathesis.program("schemathesis"),
          [
            "run", "http://127.0.0.1:\(backend.port)/api/v1/openapi.json", "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
              + "response_headers_conformance,unsupported_method",
            "--max-examples", "12", "--seed", "1", "--no-color",
          ],
          environment: [
            "SCHEMATHESIS_HOOKS": ProjectFile.path("Tests/Backend/Programs/mfa_identity.py"),
            "MFA_GATE_KEY": folder + "/gate.pem", "MFA_NOW": String(backend.clock.now.seconds),
            "MFA_TOKEN": token, "MFA_SUBJECT": phone.app.keyHash,
          ], in: folder, within: .seconds(400))
        #expect(exit == .code(0), "\((output + errors).joined(separator: "\n"))")
      }
    }
  }
}
