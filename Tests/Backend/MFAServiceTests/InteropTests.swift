import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import MFAService
import MFAWire
import Testing
import TestSupport
import OneTimePasswords

extension PythonPackages {
  static let jose = PythonPackages(
    name: "jose-mfa", packages: ["joserfc>=1,<2", "authlib>=1.3,<2"], modules: "import joserfc.jwt, authlib.jose")
  static let openAPI = PythonPackages(
    name: "openapi-mfa", packages: ["openapi-spec-validator>=0.7,<1"], modules: "import openapi_spec_validator")
}

/// A library that verifies a token with a JWKS. Its program prints the name and the attested key in the token, or the
/// name of the error.
enum JOSELibrary: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case joserfc
  case authlib = "Authlib"

  var testDescription: String { rawValue }

  /// The arguments are the token, the JWKS, the time in seconds and the audience.
  var program: String {
    let verification =
      switch self {
      case .joserfc:
        """
        from joserfc import jwt
        from joserfc.jwk import KeySet
        def verify(token, keys, now, audience):
            claims = jwt.decode(token, KeySet.import_key_set(keys), algorithms=["ES256"]).claims
            jwt.JWTClaimsRegistry(now=now, leeway=0, exp={"essential": True},
                                  iss={"essential": True, "value": "mfa-backend"},
                                  aud={"essential": True, "value": audience}).validate(claims)
            return claims
        """
      case .authlib:
        """
        from authlib.jose import JsonWebKey, JsonWebToken
        def verify(token, keys, now, audience):
            claims = JsonWebToken(["ES256"]).decode(
                token, JsonWebKey.import_key_set(keys),
                claims_options={"exp": {"essential": True}, "iss": {"essential": True, "value": "mfa-backend"},
                                "aud": {"essential": True, "value": audience}})
            claims.validate(now=now, leeway=0)
            return claims
        """
      }
    return verification + """

      import json, sys
      try:
          claims = verify(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
          print(claims["username"], claims["cnf"]["attest_key"])
      except Exception as error:
          print(type(error).__name__)
      """
  }
}

@Suite("Interoperability with other implementations", .serialized, .timeLimit(.minutes(10)))
struct InteropTests {
  /// The output of a Python program, without the final line feed.
  private func python(_ program: String, _ arguments: [String]) async throws -> String {
    let run = try await ChildProcess.run(Places.tool("python3"), ["-c", program] + arguments)
    #expect(run.exit == .code(0), "\(run.errors)")
    return run.output.joined(separator: "\n")
  }

  private static let secret = Array("12345678901234567890123456789012".utf8)

  @Test(
    "B-073 the backend accepts the codes that pyotp shows", arguments: TOTPParameters.Algorithm.allCases, [6, 7, 8])
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

  @Test("B-073 the backend accepts the codes that oathtool shows", arguments: TOTPParameters.Algorithm.allCases)
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

  @Test("B-080 pyotp reads the URI of an offered authenticator, and its code confirms the authenticator")
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
        "/auth/mfa/verify-enrollment", ["code": .string(try #require(parts.first))], as: phone.app, token: token)
      #expect(answer.status == 200)
    }
  }

  @Test("X-040 PyJWT accepts an access token with the published JWKS, and refuses a changed one")
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

  @Test(
    "X-040 joserfc and Authlib accept an access token with the published JWKS, and refuse others",
    .enabled("joserfc and Authlib cannot be installed: that needs python3-venv and PyPI") {
      await PythonPackages.jose.arePresent()
    }, arguments: JOSELibrary.allCases)
  func joseLibraries(_ library: JOSELibrary) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let keys = String(decoding: try await backend.send("GET", "/.well-known/jwks.json", as: nil).body, as: UTF8.self)
      let issuedAt = Int(backend.clock.now.seconds)
      func verify(_ token: String, after age: Int = 0, for audience: String = "mfa") async throws -> String {
        let arguments = ["-c", library.program, token, keys, String(issuedAt + age), audience]
        let run = try await ChildProcess.run(PythonPackages.jose.python, arguments)
        #expect(run.exit == .code(0), "\(run.errors)")
        return run.output.joined(separator: "\n")
      }
      #expect(try await verify(token) == "testuser \(phone.app.keyHash)")
      #expect(try await verify(token, after: 899) == "testuser \(phone.app.keyHash)")
      // At 900 seconds, joserfc refuses the token and Authlib accepts it.
      #expect(try await verify(token, after: 901) == "ExpiredTokenError")
      #expect(try await verify(token, for: "other") == "InvalidClaimError")
      let other = try #require(try await backend.signIn(phone)["token"]?.text)
      let (parts, others) = (token.split(separator: "."), other.split(separator: "."))
      #expect(try await verify("\(parts[0]).\(parts[1]).\(others[2])") == "BadSignatureError")
      #expect(try await verify("\(parts[0]).\(others[1]).\(parts[2])") == "BadSignatureError")
    }
  }

  @Test("A-177 A-197 the OpenAPI and OpenRPC documents are served and name every operation")
  func documents() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.send("GET", "/api/v1/openapi.json", as: nil)
      #expect(answer.status == 200 && answer.headers["content-type"]?.hasPrefix("application/json") == true)
      // An answer parses its body each time.
      let document = try #require(answer.json)
      #expect(document["openapi"] == "3.1.0")
      var names: [String] = []
      for (path, item) in try #require(document["paths"]?.members) {
        for (method, operation) in try #require(item.members) {
          let name = try #require(operation["operationId"]?.text)
          let known = try #require(backend.operations.first { $0.name == name }, "\(name)")
          #expect(known.path == path && known.method.rawValue.lowercased() == method, "\(name)")
          #expect(operation["tags"]?.count == 1, "\(name)")
          // A client through the gate sends three fields together; what the gate adds is an alternative to them.
          let client = try #require(operation["security"]?[0]).keys
          #expect(client.isSuperset(of: ["assertKeyId", "assertData", "assertNonce"]), "\(name)")
          #expect(client.contains("session") == (known.access != .attested), "\(name)")
          let schema = operation["responses"]?["200"]?["content"]?["application/json"]?["schema"]
          let component = try #require(schema?["$ref"]?.text?.split(separator: "/").last.map(String.init), "\(name)")
          #expect(document["components"]?["schemas"]?[component] != nil, "\(name)")
          names.append(name)
        }
      }
      #expect(names.sorted() == backend.operations.map(\.name).sorted())
      let schemes = document["components"]?["securitySchemes"]
      #expect(schemes?["assertKeyId"]?["name"] == "X-App-Assert-KeyId")
      #expect(schemes?["assertData"]?["name"] == "X-App-Assert-Data")
      #expect(schemes?["assertNonce"]?["name"] == "X-App-Assert-Nonce")
      #expect(document["info"]?["version"]?.text?.split(separator: ".").count == 3)
      let tags = (0..<(try #require(document["tags"]?.count))).map { document["tags"]?[$0]?["name"]?.text }
      #expect(Set(tags).count == 10 && tags.contains("second-factor"))
      let rpcAnswer = try await backend.send("GET", "/api/v1/openrpc.json", as: nil)
      let rpc = try #require(rpcAnswer.json)
      #expect(rpcAnswer.status == 200 && rpc["openrpc"] == "1.3.2")
      let methods = try (0..<(try #require(rpc["methods"]?.count))).map { index in
        let method = try #require(rpc["methods"]?[index])
        #expect(method["params"]?.count != nil && method["result"]?["schema"] != nil)
        return try #require(method["name"]?.text)
      }
      #expect(methods.sorted() == (backend.operations.map(\.name) + ["session.attach"]).sorted())
    }
  }

  @Test(
    "A-177 openapi-spec-validator finds no error in the OpenAPI document",
    .enabled("openapi-spec-validator cannot be installed: that needs python3-venv and PyPI") {
      await PythonPackages.openAPI.arePresent()
    })
  func openAPI() async throws {
    try await TestBackend.with { backend in
      let document = try await backend.send("GET", "/api/v1/openapi.json", as: nil)
      let program = """
        import json, sys
        from openapi_spec_validator import OpenAPIV31SpecValidator
        for error in OpenAPIV31SpecValidator(json.load(sys.stdin)).iter_errors():
            print(error.message)
        """
      let run = try await ChildProcess.run(
        PythonPackages.openAPI.python, ["-c", program], input: Array(document.body))
      #expect(run.exit == .code(0) && run.output == [], "\((run.output + run.errors).joined(separator: "\n"))")
      // Without its title, the document is not valid.
      let twin = try #require(document.json).with(["info": ["version": "1"]])
      let refused = try await ChildProcess.run(
        PythonPackages.openAPI.python, ["-c", program], input: Array(twin.encoded.utf8))
      #expect(refused.exit == .code(0) && refused.output == ["'title' is a required property"])
    }
  }
}
