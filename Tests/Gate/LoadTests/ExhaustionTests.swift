import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Attacks of many simultaneous clients on the resources of a gate, each with its memory bound.
enum Attack: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case hellos, certificates, heads, bodies, fragments, windows, silence

  var testDescription: String { rawValue }

  /// The number of clients; reduced unless the long tests were requested.
  var count: Int {
    let full =
      switch self {
      case .hellos, .certificates, .heads, .bodies, .silence: 1000
      case .fragments, .windows: 100
      }
    return Sanitizer.reduce(Exhaustion.isWanted ? full : full / 10)
  }

  /// The maximum memory of the gate for each client, in bytes.
  var bound: Int {
    switch self {
    // The cost of a connection during its handshake, a buffer for 16 KiB of a message, and a record of the same size.
    case .hellos, .certificates: 80 << 10
    // The cost of a connection, and 16 KiB of a head in a buffer that doubles.
    case .heads: 48 << 10
    // The cost of a connection and a head, and 64 KiB of a body.
    case .bodies: 128 << 10
    case .fragments, .windows: 128 << 10
    case .silence: 32 << 10
    }
  }

  /// The time until the gate has closed all connections; `nil` if they may stay open.
  var patience: Duration? {
    switch self {
    case .hellos, .certificates, .heads, .bodies, .silence: .seconds(16)
    case .fragments, .windows: nil
    }
  }
}

/// Whether the full attacks were requested.
enum Exhaustion {
  static let isWanted = ProcessInfo.processInfo.environment["SALLYPORT_TEST_EXHAUSTION"] != nil
}

@Suite("Attacks by clients", .serialized, .timeLimit(.minutes(10)))
struct ExhaustionTests {
  @Test(
    "A gate under attack uses bounded memory for each client, and still answers the others", arguments: Attack.allCases)
  func bounded(_ attack: Attack) async throws {
    _ = DescriptorLimit.raised
    let flood = try FloodBackend()
    defer { flood.stop() }
    let sink = try AttackerProcess.sink()
    defer { sink.process.kill() }
    try await EchoProcess.serving { echo in
      var plan = GatePlan()
      plan.isEnforcing = false
      // Closes sockets that are neither read nor closed, sooner than after the default of 90 seconds.
      plan.further = "session: { ping: 4s, idle_timeout: 10s }"
      // A client can send certificates only if the gate requests them.
      if attack == .certificates { plan.further += "\ndebug_mtls: { client_ca_file: \"DIR/tls-ca.pem\" }" }
      plan.routes = [
        ("/", echo), ("/flood", "ws://127.0.0.1:\(flood.port)"), ("/sink", "ws://127.0.0.1:\(try await sink.port())"),
      ]
      try await GateProcess.serving(plan) { gate in try await endure(attack, at: gate) }
    }
  }

  private func endure(_ attack: Attack, at gate: GateProcess) async throws {
    let figures = ProcessFigures(of: gate)
    let genuine = try await Visitor(to: gate).open()
    _ = try await genuine.exchange(.text("warm"))
    // Allocations that a loop makes once do not count.
    _ = try await gather(8, workers: 8) { _ in try await Visitor(to: gate).challenge() }
    let sockets = try figures.sockets
    try figures.forgetPeak()
    let before = try figures.memory
    let attacker = try AttackerProcess(attack, at: gate)
    defer { attacker.process.kill() }
    let standing = try await attacker.ready()
    let start = ContinuousClock.now
    #expect(standing == attack.count)
    for number in 0..<20 { #expect(try await genuine.exchange(.text("\(number)")) == .text("\(number)")) }
    #expect(try await Visitor(to: gate).challenge().count == 64)
    let bytes = try figures.peakMemory - before
    expectMemory(
      bytes, below: attack.count * attack.bound + (4 << 20),
      "for \(attack.count) clients, \(attack.rawValue), \(bytes / attack.count) each")
    if let patience = attack.patience {
      try await eventually("the end of \(attack)", within: patience) { try figures.sockets <= sockets }
      print("LoadTests: \(attack) ended \(start.duration(to: .now)) after its last client was ready")
    }
    attacker.process.closeInput()
    try await eventually("the end of the attacker's sockets", within: .seconds(20)) { try figures.sockets <= sockets }
    #expect(try await genuine.exchange(.text("after")) == .text("after"))
  }
}

/// Runs `attacker.py`.
private struct AttackerProcess {
  let process: ChildProcess

  private static let program = ProjectFile.path("Tests/Gate/Programs/attacker.py")

  init(_ attack: Attack, at gate: GateProcess) throws {
    process = try ChildProcess(
      Places.tool("python3"),
      [Self.program, attack.rawValue, "\(gate.port)", gate.folder.tlsAuthorityPath, "\(attack.count)"],
      environment: ["PYTHONDONTWRITEBYTECODE": "1"])
  }

  private init(process: ChildProcess) { self.process = process }

  static func sink() throws -> AttackerProcess {
    AttackerProcess(
      process: try ChildProcess(
        Places.tool("python3"), [program, "sink"], environment: ["PYTHONDONTWRITEBYTECODE": "1"]))
  }

  func port() async throws -> Int { try await number("port") }
  func ready() async throws -> Int { try await number("ready") }

  private func number(_ name: String) async throws -> Int {
    let line = try await process.output.first(name, within: .seconds(120)) { $0.contains(name) }
    return try JSONDecoder().decode([String: Int].self, from: Data(line.utf8))[name] ?? 0
  }
}
