import ByteCoding
import Foundation
import Locking
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("Signing in with an identity provider, through the real gate", .serialized, .timeLimit(.minutes(10)))
struct ProviderSignInTests {
  /// One way to call the backend through the gate: by REST or by a socket.
  private typealias Call = (_ operation: String, _ body: JSONValue, _ token: String?) async throws -> JSONValue

  private static let paths = [
    "auth.oidc-challenge": "/auth/oidc/challenge", "auth.oidc": "/auth/oidc", "auth.oidc-bind": "/auth/oidc/bind",
    "mfa.verify-login": "/auth/mfa/verify-login", "mfa.verify-enrollment": "/auth/mfa/verify-enrollment",
    "mfa.enroll-totp": "/auth/mfa/enroll", "mfa.link": "/mfa/link",
  ]

  private static func rest(_ device: RegisteredDevice) -> Call {
    { operation, body, token in
      try await device.call("POST", "/api/v1" + (paths[operation] ?? ""), body, token: token).body
    }
  }

  private static func socket(_ socket: DeviceSocket) -> Call {
    let last = LockedValue(0)
    @Sendable func next() -> Int {
      last.withLock { id in
        id += 1
        return id
      }
    }
    return { operation, body, token in
      if let token { _ = try await socket.call(next(), "session.attach", ["token": .string(token)]) }
      let answer = try await socket.call(next(), operation, body)
      return answer["result"] ?? answer["error"]?["data"] ?? .null
    }
  }

  /// Asks for a challenge by `call`, and returns the provider's answer to it.
  private static func identity(_ provider: TestProvider, _ call: Call) async throws -> JSONValue {
    let challenge = try await call("auth.oidc-challenge", [:], nil)
    let text = try #require(challenge["challenge"]?.text, "\(challenge)")
    let token = try await provider.token(for: text, at: WallClock.system.now())
    return ["challengeId": challenge["challengeId"] ?? nil, "idToken": .string(token)]
  }

  /// The code that an authenticator with `secret` shows, `steps` steps from now.
  private static func code(_ secret: String, later steps: Int) async throws -> JSONValue {
    let run = try await ChildProcess.run(
      Places.tool("oathtool"), ["--totp", "-b", "--now", "+\(30 * steps) seconds", secret])
    return .string(try #require(run.output.first, "\(run.errors)"))
  }

  @Test(
    "B-050 through the gate an ID token opens nothing alone or elsewhere or twice, and with TOTP it is a full session",
    arguments: Wire.allCases)
  func signIn(_ wire: Wire) async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await ProviderServer(in: folder)
      defer { server.process.kill() }
      try await BackendBehindGate.serving(options: server.options) { servers in
        let device = try await servers.device("phone")
        let token = try await device.signIn()
        let connection = wire == .socket ? try device.connect() : nil
        defer { connection?.process.kill() }
        let call = connection.map(Self.socket) ?? Self.rest(device)
        let offer = try await call("mfa.enroll-totp", [:], token)
        let secret = try #require(offer["secret"]?.text, "\(offer)")
        _ = try await call("mfa.verify-enrollment", ["code": Self.code(secret, later: 0)], token)
        let bound = try await call("auth.oidc-bind", Self.identity(server.provider, call), token)
        #expect(bound["message"] == "Identity provider connected", "\(bound)")

        let identity = try await Self.identity(server.provider, call)
        // Another genuine app instance can do nothing with it.
        let other = try await servers.device("other")
        #expect(try await Self.rest(other)("auth.oidc", identity, nil)["code"] == "authentication_failed")
        let first = try await call("auth.oidc", identity, nil)
        #expect(first["scope"] == "mfa", "\(first)")
        #expect(try await call("auth.oidc", identity, nil)["code"] == "authentication_failed")
        let pending = try #require(first["token"]?.text)
        #expect(try await call("mfa.link", [:], pending)["code"] == "mfa_required")
        let second = try await call(
          "mfa.verify-login", ["code": Self.code(secret, later: 1)], pending)
        let full = try #require(second["token"]?.text, "\(second)")
        #expect(try await call("mfa.link", [:], full)["linkCode"] != nil)
      }
    }
  }

  @Test("a provider that is down does not stop the start; sign-ins get 503 until it is there")
  func providerDown() async throws {
    try await Places.withTemporaryFolder { folder in
      // The port of a server that has stopped.
      let stopped = try await ProviderServer(in: folder)
      stopped.process.kill()
      _ = try await stopped.process.exit(within: .seconds(10))
      let gate = try TestGate(clock: .system)
      let backend = try await BackendProcess(
        ["--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate) + stopped.options)
      defer { backend.process.kill() }
      let (port, app) = (try #require(backend.port), AppInstance.genuine())
      func post(_ path: String, _ body: JSONValue) async throws -> CurlAnswer {
        try await curl(
          "POST", "http://127.0.0.1:\(port)/api/v1\(path)", body,
          ["-H", "X-Attest-Assertion: \(try await gate.assertion(for: app))"])
      }
      let identity = try await Self.identity(stopped.provider) { _, body, _ in
        try await post("/auth/oidc/challenge", body).body
      }
      let down = try await post("/auth/oidc", identity)
      #expect(down.status == 503 && down["code"] == "unavailable", "\(down.text)")
      // The keys are fetched as soon as the provider answers. The user is unknown then.
      let port2 = try #require(stopped.provider.issuer.split(separator: ":").last)
      let again = try ChildProcess(
        "/usr/bin/python3",
        ["-u", "-m", "http.server", String(port2), "--bind", "127.0.0.1", "--directory", folder])
      defer { again.kill() }
      _ = try await again.output.first("the provider's port") { $0.hasPrefix("Serving HTTP on") }
      let up = try await post("/auth/oidc", identity)
      #expect(up.status == 401 && up["code"] == "authentication_failed", "\(up.text)")
      #expect(try await backend.stop() == .code(0))
    }
  }

  @Test("a file with the provider's roots that cannot be read stops the start")
  func roots() async throws {
    let gate = try TestGate(clock: .system)
    let run = try await ChildProcess.run(
      Places.product("mfa-backend"),
      ["run", "--ephemeral", "--listen", "127.0.0.1:0", "--oidc-issuer", "https://login.example.com"]
        + ["--oidc-audience", "app", "--oidc-ca", "/nonexistent/roots.pem"] + BackendProcess.trusting(gate))
    #expect(run.exit == .code(78))
    #expect(run.errors.contains { $0.contains("the identity provider's root file /nonexistent/roots.pem") })
  }
}
