import Cryptography
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// Serialized: each test measures its own gate process.
@Suite("A gate under load", .serialized, .timeLimit(.minutes(30)))
struct LoadTests {
  @Test("A gate keeps 5,000 idle sockets at less than 20 KB each, and all of them still work")
  func idle() async throws {
    // The gate uses two descriptors for each socket.
    let wanted = Sanitizer.reduce(5000)
    let count = min(wanted, (DescriptorLimit.raised - 1000) / 2)
    if count < wanted { print("LoadTests: this system's limit of descriptors allows \(count) sockets, not \(wanted)") }
    try await GateProcess.echoing { gate in
      let figures = ProcessFigures(of: gate)
      let visitor = try Visitor(to: gate)
      let before = try figures.memory
      let sockets = try await gather(count, workers: 32) { _ in try await visitor.open() }
      expectMemory(try figures.memory - before, below: count * 20_000, "for \(count) idle sockets")

      let answers = try await gather(count, workers: 32) { number in
        try await sockets[number].exchange(.text("socket \(number)")) == .text("socket \(number)")
      }
      #expect(answers.count == count && answers.allSatisfy { $0 })
      expectMemory(try figures.memory - before, below: count * 20_000, "for \(count) sockets that have been used")
    }
  }

  @Test(
    "A gate relays long messages in both directions unchanged, without buffering them",
    arguments: [(size: 64 << 10, count: 100), (size: 16 << 20, count: 3)])
  func messages(size: Int, count: Int) async throws {
    try await GateProcess.echoing { gate in
      let figures = ProcessFigures(of: gate)
      let socket = try await Visitor(to: gate).open()
      _ = try await socket.exchange(.text("warm"))
      try figures.forgetPeak()
      let before = try figures.memory
      for _ in 0..<count {
        let message = SecureRandom.bytes(size)
        guard case .binary(let answer) = try await socket.exchange(.binary(message)) else {
          Issue.record("a text message came back")
          return
        }
        #expect(answer.count == size)
        #expect(SHA256.hash(answer) == SHA256.hash(message))
      }
      expectMemory(try figures.peakMemory - before, below: 4 << 20, "for messages of \(size)")
    }
  }

  /// For 100,000 sockets and a release build use `scripts/bench --leaks`.
  @Test("A gate keeps no memory or descriptor of 2,000 closed sockets", arguments: [false, true])
  func churn(isEnforcing: Bool) async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.isEnforcing = isEnforcing
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { gate in try await Self.churn(at: gate, isEnforcing: isEnforcing) }
    }
  }

  private static func churn(at gate: GateProcess, isEnforcing: Bool) async throws {
    let figures = ProcessFigures(of: gate)
    let visitor = try Visitor(to: gate)
    // Counters must rise, so each worker has its own device.
    let workers = 8
    let phones = try (0..<workers).map { _ in try Phone(of: gate.authority) }
    if isEnforcing { for phone in phones { try await visitor.register(phone) } }
    let cycle: @Sendable (Int) async throws -> Void = { number in
      let socket =
        isEnforcing
        ? try await visitor.open(as: phones[number % workers], counter: UInt32(number / workers + 1))
        : try await visitor.open()
      _ = try await socket.exchange(.text("\(number)"))
      await socket.close()
    }
    let listeners = try figures.sockets
    let first = 104
    _ = try await gather(first, workers: workers, cycle)
    try await eventually("the first sockets to be closed") { try figures.sockets <= listeners }
    let (memory, descriptors) = try (figures.memory, figures.descriptors)
    let count = Sanitizer.reduce(2000)
    _ = try await gather(count, workers: workers) { try await cycle(first + $0) }
    try await eventually("all sockets to be closed") { try figures.sockets <= listeners }
    // The gate reads watched files now and then, so one more may be open for a moment.
    try await eventually("all descriptors to be closed") { try figures.descriptors.count <= descriptors.count }
    // The store records spent nonces on disk; its cache is bounded.
    expectMemory(
      try figures.memory - memory, below: isEnforcing ? 16 << 20 : 4 << 20,
      "after \(count) sockets\(isEnforcing ? " that were admitted" : "")")
  }
}
