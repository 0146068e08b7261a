import AttestGate
import ByteCoding
import GateFixtures
import GateService
import Logging
import Observability
import SimulatedDevice
import Transport

/// A gate and its registered devices.
struct Fleet: Sendable {
  let bench: GateBench
  let devices: [MintedDevice]
  private let counter = SignCounter()

  init(of count: Int) async throws {
    bench = try GateBench()
    var devices: [MintedDevice] = []
    for _ in 0..<count { devices.append(try await bench.registeredDevice(claims: AppClaims())) }
    self.devices = devices
  }

  /// Returns the headers of `count` upgrades; the devices take turns.
  func mint(_ count: Int) throws -> [[AssertionClaim.Name: String]] {
    try (0..<count).map { index in
      try devices[index % devices.count].headers(over: try bench.nonce(), count: counter.next())
    }
  }
}

/// Calls the gate directly.
struct GateEntrance: Entrance {
  let fleet: Fleet

  func mint(_ count: Int) throws -> [AdmissionClaim] {
    try fleet.mint(count).map { AdmissionClaim(headers: $0) }
  }

  func pass(_ claim: AdmissionClaim) async throws { _ = try await fleet.bench.gate.admit(claim) }
}

/// Calls the responder in front of the gate, like the engine.
struct ResponderEntrance: Entrance {
  private let fleet: Fleet
  private let responder: GateResponder
  private let peer = Peer(address: .ipv4([127, 0, 0, 1], port: 50000))

  init(fleet: Fleet) throws {
    self.fleet = fleet
    guard let route = Route(path: "/", upstream: .webSocket(host: "127.0.0.1", port: 8080)),
      let routes = RouteTable([route])
    else { throw FixtureError.unexpected }
    // The log would contain only refusals, and this benchmark causes none.
    let sink = LineSink(descriptor: 2)
    responder = GateResponder(
      gate: fleet.bench.gate, registrar: fleet.bench.registrar, challenges: fleet.bench.challenges,
      identities: IdentityIssuer(issuer: "gate", audience: "upstream", keys: fleet.bench.identityKeys), routes: routes,
      logger: Logger(label: "gate-bench") { JSONLineHandler(label: $0, sink: sink) },
      clock: fleet.bench.clock.wallClock)
  }

  func mint(_ count: Int) throws -> [Request] {
    try fleet.mint(count).map { headers in
      var fields = HeaderFields([
        .init(name: "Host", value: "localhost:6200"), .init(name: "Connection", value: "Upgrade"),
        .init(name: "Upgrade", value: "websocket"), .init(name: "Sec-WebSocket-Version", value: "13"),
        .init(name: "Sec-WebSocket-Key", value: "dGhlIHNhbXBsZSBub25jZQ=="),
      ])
      for name in AssertionClaim.Name.allCases { fields.append(name.rawValue, headers[name] ?? "") }
      return Request(
        id: String(repeating: "0", count: 32), method: "GET", target: "/", path: "/", headers: fields,
        upgrade: UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ=="))
    }
  }

  func pass(_ request: Request) async throws {
    guard case .relay(_, let head) = await responder.respond(to: request, from: peer), !head.isEmpty
    else { throw FixtureError.unexpected }
  }
}

/// Calls the registrar.
struct RegistrarEntrance: Entrance {
  let fleet: Fleet

  func mint(_ count: Int) throws -> [RegistrationClaim] {
    try (0..<count).map { _ in
      let bench = fleet.bench
      return try bench.device(claims: AppClaims()).registration(over: try bench.nonce(), at: bench.clock.now)
    }
  }

  func pass(_ claim: RegistrationClaim) async throws { _ = try await fleet.bench.registrar.register(claim) }
}
