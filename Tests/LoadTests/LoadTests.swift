import Cryptography
import GateProcesses
import TestSupport
import Testing
import Transport
import TransportEngine

/// One at a time: each measures a gate of its own.
@Suite("A gate under load", .serialized, .timeLimit(.minutes(10)))
struct LoadTests {
  @Test("holds 5,000 idle sockets for less than 20 KB each, and all of them still work")
  func idle() async throws {
    // The gate has two descriptors a socket.
    let wanted = Sanitizer.reduce(5000)
    let count = min(wanted, (DescriptorLimit.raised - 1000) / 2)
    if count < wanted { print("LoadTests: this system's limit of descriptors allows \(count) sockets, not \(wanted)") }
    try await GateProcess.echoing { gate in
      let figures = ProcessFigures(of: gate)
      let visitor = try Visitor(to: gate)
      let before = try figures.memory
      let sockets = try await gather(count, workers: 32) { _ in try await visitor.open() }
      expectMemory(try figures.memory - before, below: count * 20_000, "for \(count) sockets that do nothing")

      let answers = try await gather(count, workers: 32) { number in
        try await sockets[number].exchange(.text("socket \(number)")) == .text("socket \(number)")
      }
      #expect(answers.count == count && answers.allSatisfy { $0 })
      expectMemory(try figures.memory - before, below: count * 20_000, "for \(count) sockets that have been used")
    }
  }

  @Test(
    "relays long messages both ways without a change and without keeping them",
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
          Issue.record("a text came back")
          return
        }
        #expect(answer.count == size)
        #expect(SHA256.hash(answer) == SHA256.hash(message))
      }
      expectMemory(try figures.peakMemory - before, below: 4 << 20, "for messages of \(size)")
    }
  }

  @Test("keeps nothing of 2,000 sockets that came and went")
  func churn() async throws {
    try await GateProcess.echoing { gate in
      let figures = ProcessFigures(of: gate)
      let visitor = try Visitor(to: gate)
      let cycle: @Sendable (Int) async throws -> Void = { number in
        let socket = try await visitor.open()
        _ = try await socket.exchange(.text("\(number)"))
        await socket.close()
      }
      let listeners = try figures.sockets
      _ = try await gather(100, workers: 8, cycle)
      try await eventually("the first sockets to be closed") { try figures.sockets <= listeners }
      let (memory, descriptors) = try (figures.memory, figures.descriptors)
      let count = Sanitizer.reduce(2000)
      _ = try await gather(count, workers: 8, cycle)
      try await eventually("all sockets to be closed") { try figures.sockets <= listeners }
      #expect(try figures.descriptors.count <= descriptors.count, "\(descriptors)")
      expectMemory(try figures.memory - memory, below: 4 << 20, "after \(count) sockets")
    }
  }
}
