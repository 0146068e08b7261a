import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// What many clients do at once to use up a gate, each with the bound of what they get.
enum Attack: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case hellos, certificates, heads, bodies, fragments, windows, silence

  var testDescription: String { rawValue }

  /// How many clients; all of them, or a few where time is short.
  var count: Int {
    let full =
      switch self {
      case .hellos, .certificates, .heads, .bodies, .silence: 1000
      case .fragments, .windows: 100
      }
    return Sanitizer.reduce(Exhaustion.isWanted ? full : full / 10)
  }

  /// Bytes of the gate's memory for each client, at most.
  var bound: Int {
    switch self {
    // What a connection costs before it is one, room for 16 KiB of a message, and a record of as much.
    case .hellos, .certificates: 80 << 10
    // What a connection costs, and 16 KiB of a head in a buffer that doubles.
    case .heads: 48 << 10
    // The same, and 64 KiB of a body.
    case .bodies: 128 << 10
    case .fragments, .windows: 128 << 10
    case .silence: 32 << 10
    }
  }

  /// How long it takes until the gate has ended all of it; `nil` if it may go on for ever.
  var patience: Duration? {
    switch self {
    case .hellos, .certificates, .heads, .bodies, .silence: .seconds(16)
    case .fragments, .windows: nil
    }
  }
}

/// Whether there is time for the whole of it.
enum Exhaustion {
  static let isWanted = ProcessInfo.processInfo.environment["SALLYPORT_TEST_EXHAUSTION"] != nil
}

@Suite("A gate whose clients mean ill", .serialized, .timeLimit(.minutes(10)))
struct ExhaustionTests {
  @Test("gives each of them a bounded piece of memory, and others their answers", arguments: Attack.allCases)
  func bounded(_ attack: Attack) async throws {
    _ = DescriptorLimit.raised
    let flood = try FloodBackend()
    defer { flood.stop() }
    let sink = try AttackerProcess.sink()
    defer { sink.process.kill() }
    try await EchoProcess.serving { echo in
      var plan = GatePlan()
      plan.isEnforcing = false
      // What is neither read nor ended by anybody ends by this: here sooner than after 90 seconds.
      plan.further = "session: { ping: 4s, idle_timeout: 10s }"
      // Only who is asked for certificates can send them.
      if attack == .certificates { plan.further += "\ndebug_mtls: { client_ca_file: \"DIR/tls-ca.pem\" }" }
      plan.routes = [
        ("/", echo), ("/flood", "ws://127.0.0.1:\(flood.port)"), ("/sink", "ws://127.0.0.1:\(try await sink.port())"),
      ]
      try await GateProcess.serving(plan) { gate in try await endure(attack, at: gate) }
    }
  }

  private func endure(_ attack: Attack, at gate: GateProcess) async throws {
    let figures = ProcessFigures(of: gate)
    let honest = try await Visitor(to: gate).open()
    _ = try await honest.exchange(.text("warm"))
    // What a loop allocates once is not the attack's.
    _ = try await gather(8, workers: 8) { _ in try await Visitor(to: gate).challenge() }
    let sockets = try figures.sockets
    try figures.forgetPeak()
    let before = try figures.memory
    let attacker = try AttackerProcess(attack, at: gate)
    defer { attacker.process.kill() }
    let standing = try await attacker.ready()
    let start = ContinuousClock.now
    #expect(standing == attack.count)
    for number in 0..<20 { #expect(try await honest.exchange(.text("\(number)")) == .text("\(number)")) }
    #expect(try await Visitor(to: gate).challenge().count == 64)
    let bytes = try figures.peakMemory - before
    expectMemory(
      bytes, below: attack.count * attack.bound + (4 << 20),
      "for \(attack.count) clients, \(attack.rawValue), \(bytes / attack.count) each")
    if let patience = attack.patience {
      try await eventually("the end of \(attack)", within: patience) { try figures.sockets <= sockets }
      print("LoadTests: \(attack) is over \(start.duration(to: .now)) after its last client stood")
    }
    attacker.process.closeInput()
    try await eventually("the end of the attacker's sockets", within: .seconds(20)) { try figures.sockets <= sockets }
    #expect(try await honest.exchange(.text("after")) == .text("after"))
  }
}

/// `attacker.py`.
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
