import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import Testing
import TestSupport

@Suite("Together with what others wrote", .serialized)
struct InteropTests {
  /// What a Python program prints, without the line's end.
  private func python(_ program: String, _ arguments: [String]) async throws -> String {
    let run = try await ChildProcess.run(Places.tool("python3"), ["-c", program] + arguments)
    #expect(run.exit == .code(0), "\(run.errors)")
    return run.output.joined(separator: "\n")
  }

  private static let secret = Array("12345678901234567890123456789012".utf8)

  @Test("B-073 pyotp shows the codes that we take", arguments: TOTPParameters.Algorithm.allCases, [6, 7, 8])
  func pyotp(_ algorithm: TOTPParameters.Algorithm, _ digits: Int) async throws {
    let parameters = try #require(TOTPParameters(checkedAlgorithm: algorithm, digits: digits, period: 30))
    let secret = (0..<parameters.secretLength).map { Self.secret[$0 % 32] }
    let shown = try await python(
      """
      import hashlib, pyotp, sys
      totp = pyotp.TOTP(sys.argv[1], digits=int(sys.argv[2]), digest=getattr(hashlib, sys.argv[3].lower()))
      print(totp.at(1767225600))
      """, [Base32.encode(secret), String(digits), algorithm.rawValue])
    #expect(shown == parameters.code(secret, step: parameters.step(at: Timestamp(seconds: 1_767_225_600))))
  }

  @Test("B-073 oathtool shows the codes that we take", arguments: TOTPParameters.Algorithm.allCases)
  func oathtool(_ algorithm: TOTPParameters.Algorithm) async throws {
    let parameters = try #require(TOTPParameters(checkedAlgorithm: algorithm, digits: 6, period: 30))
    let secret = (0..<parameters.secretLength).map { Self.secret[$0 % 32] }
    let run = try await ChildProcess.run(
      Places.tool("oathtool"),
      [
        "--totp=\(algorithm.rawValue)", "--digits=6", "--now=2026-01-01 00:00:00 UTC", Hex.encode(secret),
      ])
    #expect(run.output == [parameters.code(secret, step: parameters.step(at: Timestamp(seconds: 1_767_225_600)))])
  }

  @Test("B-080 pyotp reads the URI of an offer, and its code sets the authenticator up")
  func uri() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "Zoë & co: 1")
      let token = try await backend.token(phone)
      let offer = try await backend.post(
        "/auth/mfa/enroll", ["algorithm": "SHA256", "digits": 8], as: phone.app, token: token)
      let shown = try await python(
        "import pyotp, sys\ntotp = pyotp.parse_uri(sys.argv[1])\nprint(totp.at(int(sys.argv[2])), totp.issuer, "
          + "totp.name)",
        [offer["qr_code_url"]?.text ?? "", String(backend.clock.now.seconds)])
      let parts = shown.split(separator: " ", maxSplits: 2).map(String.init)
      #expect(parts.dropFirst() == ["Sallyport", "Zoë & co: 1"])
      let answer = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(parts[0])], as: phone.app, token: token)
      #expect(answer.status == 200)
    }
  }

  @Test("X-040 PyJWT takes our access tokens with our JWKS, and refuses one that was changed")
  func pyJWT() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let program = """
        import json, jwt, sys
        keys = jwt.PyJWKSet.from_dict(json.loads(sys.argv[2]))
        header = jwt.get_unverified_header(sys.argv[1])
        key = next(key for key in keys.keys if key.key_id == header["kid"])
        try:
            claims = jwt.decode(sys.argv[1], key.key, algorithms=["ES256"], audience="mfa", issuer="mfa-backend",
                                options={"verify_exp": False, "verify_iat": False})
            print(claims["username"])
        except jwt.InvalidTokenError as error:
            print(type(error).__name__)
        """
      let jwks = try await backend.send("GET", "/.well-known/jwks.json", as: nil)
      let keys = String(decoding: jwks.body, as: UTF8.self)
      #expect(try await python(program, [token, keys]) == "testuser")
      let parts = token.split(separator: ".").map(String.init)
      let other = try await backend.signIn(phone)["token"]?.text?.split(separator: ".").last.map(String.init) ?? ""
      #expect(try await python(program, [parts[0] + "." + parts[1] + "." + other, keys]) == "InvalidSignatureError")
    }
  }

  @Test("A-177 the OpenAPI and OpenRPC documents are served, and name every operation")
  func openAPI() async throws {
    try await TestBackend.with { backend in
      let document = try await backend.send("GET", "/api/v1/openapi.json", as: nil)
      #expect(document["openapi"] == "3.1.0")
      let names = document["paths"]?.keys ?? []
      #expect(names.isSuperset(of: ["/mfa/enroll", "/auth/initiate", "/device/{deviceId}/status"]))
      let rpc = try await backend.send("GET", "/api/v1/openrpc.json", as: nil)
      #expect((rpc["methods"]?.count ?? 0) > 20)
    }
  }
}
