import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import GateFixtures
import GateService
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

/// One way in which a new gate refuses a request.
struct RefusalCase: Sendable, CustomStringConvertible {
  let description: String
  let status: Int
  let code: String
  let text: String
  let step: String
  let attempt: @Sendable () async throws -> (service: ServiceBench, request: Request)

  init(
    _ description: String, _ status: Int, _ code: String, _ text: String, step: String,
    _ attempt: @escaping @Sendable () async throws -> (service: ServiceBench, request: Request)
  ) {
    self.description = description
    self.status = status
    self.code = code
    self.text = text
    self.step = step
    self.attempt = attempt
  }

  static let all = requests + nonces + registrations + admissions + stores + tokens

  static let badNonce = "Invalid or expired nonce"

  /// Returns an attempt to register a device after `corrupt` has changed it.
  static func registering(
    apps: [AppPolicy]? = nil,
    _ corrupt: @escaping @Sendable (inout MintedDevice, GateBench) async throws -> Void
  ) -> @Sendable () async throws -> (service: ServiceBench, request: Request) {
    {
      let bench = try GateBench(apps: apps)
      var device = try bench.device()
      try await corrupt(&device, bench)
      return (try ServiceBench(bench), try .registration(device.registration(over: bench.nonce(), at: bench.clock.now)))
    }
  }

  /// Returns an attempt to upgrade by a registered device; `change` returns its headers, made from valid ones.
  static func upgrading(
    _ change: @escaping @Sendable (MintedDevice, GateBench, [(String, String)]) async throws -> [(String, String)]
  ) -> @Sendable () async throws -> (service: ServiceBench, request: Request) {
    {
      let bench = try GateBench()
      let device = try await bench.registeredDevice()
      let headers = try device.fields(over: bench.nonce(), count: 1)
      return (try ServiceBench(bench), .upgrade(try await change(device, bench, headers)))
    }
  }

  /// Returns an attempt to upgrade by a registered device with a risk metric, or without one.
  static func assessed(
    _ metric: Int?, isOutdated: Bool = false, by policy: RiskPolicy
  ) -> @Sendable () async throws -> (service: ServiceBench, request: Request) {
    {
      guard let appID = AppID(GateBench.appID) else { throw FixtureError.unexpected }
      let bench = try GateBench(apps: [AppPolicy(appID: appID, environments: [.development], risk: policy)])
      let device = try await bench.registeredDevice()
      let now = bench.clock.now
      for due in try await bench.store.dueReceipts(of: [appID], at: now, limit: 1) {
        let risk = metric.map { KeyRisk(metric: $0, at: now) }
        _ = try await bench.store.settle(due, as: ReceiptSettlement(risk: risk, next: isOutdated ? nil : now))
      }
      return (try ServiceBench(bench), .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    }
  }

  /// Returns an attempt that needs no device.
  static func asking(_ request: Request) -> @Sendable () async throws -> (service: ServiceBench, request: Request) {
    { (try ServiceBench(GateBench()), request) }
  }
}

extension [(String, String)] {
  func replacing(_ name: AssertionClaim.Name, with value: String) -> Self {
    filter { $0.0 != name.rawValue } + [(name.rawValue, value)]
  }

  func without(_ name: AssertionClaim.Name) -> Self { filter { $0.0 != name.rawValue } }
}

extension RefusalCase {
  static let requests = [
    RefusalCase(
      "a path without a resource", 404, "not_found", "There is nothing at this path", step: "path",
      asking(.plain("GET", "/attest/other"))),
    RefusalCase(
      "a POST for a challenge", 405, "method_not_allowed", "Use GET here", step: "method",
      asking(.plain("POST", "/attest/challenge"))),
    RefusalCase(
      "a GET for a registration", 405, "method_not_allowed", "Use POST here", step: "method",
      asking(.plain("GET", "/attest/register"))),
    RefusalCase(
      "an ordinary request on a route for WebSockets", 426, "upgrade_required",
      "Only WebSockets are served here: send an opening handshake", step: "upgrade", asking(.plain("GET", "/"))),
    RefusalCase(
      "a page of another host", 403, "origin_refused", "Pages of another host may not open a WebSocket here",
      step: "origin", asking(.upgrade([("Origin", "https://evil.example")]))),
    RefusalCase(
      "a proxy's question about an upgrade to another protocol", 403, "upgrade_refused",
      "No other upgrade than to WebSocket may pass", step: "verify_upgrade",
      asking(.plain("GET", "/attest/verify", [("Upgrade", "h2c")]))),
    RefusalCase(
      "a body that is not JSON", 400, "malformed_json",
      "The body must be JSON in UTF-8: at most 256 values, 64 members an object, each once, names in ASCII",
      step: "json_syntax", asking(.plain("POST", "/attest/register", body: "{"))),
    RefusalCase(
      "a body that is not an object", 400, "malformed_json", "The body must be a JSON object", step: "json_type",
      asking(.plain("POST", "/attest/register", body: "[]"))),
    RefusalCase(
      "a body without a nonce", 400, "malformed_json", "nonce is missing", step: "json_member",
      asking(.plain("POST", "/attest/register", body: #"{"keyId":"","attestation":""}"#))),
    RefusalCase(
      "a body with a number", 400, "malformed_json", "keyId must be a string", step: "json_type",
      asking(.plain("POST", "/attest/register", body: #"{"keyId":1,"attestation":"","nonce":""}"#))),
    RefusalCase(
      "a body with null", 400, "malformed_json", "attestation must be a string", step: "json_type",
      asking(.plain("POST", "/attest/register", body: #"{"keyId":"","attestation":null,"nonce":""}"#))),
  ]

  static let nonces = [
    RefusalCase("a registration with another gate's nonce", 401, "nonce_invalid", badNonce, step: "nonce_key_unknown") {
      let bench = try GateBench()
      let nonce = try #require(Nonce(bytes: try bench.nonce().bytes.enumerated().map { $0 == 0 ? $1 ^ 1 : $1 }))
      let claim = try bench.device().registration(over: nonce, at: bench.clock.now)
      return (try ServiceBench(bench), try .registration(claim))
    },
    RefusalCase(
      "an upgrade with a forged nonce", 401, "nonce_invalid", badNonce, step: "nonce_code",
      upgrading { device, bench, _ in
        let nonce = try #require(Nonce(bytes: try bench.nonce().bytes.enumerated().map { $0 == 31 ? $1 ^ 1 : $1 }))
        return try device.fields(over: nonce, count: 1)
      }),
    RefusalCase(
      "an upgrade with a nonce in capitals", 401, "nonce_invalid", badNonce, step: "nonce_form",
      upgrading { _, _, headers in
        headers.replacing(.nonce, with: String(repeating: "A", count: 64))
      }),
    RefusalCase(
      "an upgrade with a nonce of 60.001 s", 401, "nonce_expired", badNonce, step: "nonce_age",
      upgrading { _, bench, headers in
        bench.clock.advance(by: .milliseconds(60_001))
        return headers
      }),
    RefusalCase(
      "an upgrade with a used nonce", 401, "nonce_used", badNonce, step: "nonce_spent",
      upgrading { device, bench, _ in
        let nonce = try bench.nonce()
        _ = try await bench.gate.admit(try device.claim(over: nonce, count: 1))
        return try device.fields(over: nonce, count: 2)
      }),
  ]

  static let stores = [
    RefusalCase(
      "a registration without a store", 503, "store_unavailable", "The key store is unavailable: try again later",
      step: "store_unreachable"
    ) {
      let bench = try GateBench(registry: SQLiteStore(path: "/nonexistent/state.db"))
      let claim = try bench.device().registration(over: bench.nonce(), at: bench.clock.now)
      return (try ServiceBench(bench), try .registration(claim))
    },
    RefusalCase(
      "an upgrade while the queue of the store is full", 503, "overloaded", "The gate is overloaded: try again later",
      step: "store_overloaded"
    ) {
      let folder = try TemporaryFolder()
      let bench = try GateBench(registry: SQLiteStore(path: folder.file("state.db"), mostWaiting: 0))
      let headers = try bench.device().fields(over: bench.nonce(), count: 1)
      return (try ServiceBench(bench), .upgrade(headers))
    },
    RefusalCase(
      "a registration while too many registrations run", 503, "overloaded", "The gate is overloaded: try again later",
      step: "registrations_overloaded"
    ) {
      let bench = try GateBench(limiter: VerificationLimiter(width: 1, capacity: 0))
      let claim = try bench.device().registration(over: bench.nonce(), at: bench.clock.now)
      return (try ServiceBench(bench), try .registration(claim))
    },
    RefusalCase(
      "a registration without an app", 503, "not_configured", "Server not configured for App Attest",
      step: "not_configured", registering(apps: []) { _, _ in }),
    RefusalCase(
      "an upgrade without an app", 503, "not_configured", "Server not configured for App Attest",
      step: "not_configured"
    ) {
      let bench = try GateBench(apps: [])
      return (try ServiceBench(bench), .upgrade(try bench.device().fields(over: bench.nonce(), count: 1)))
    },
  ]
}
