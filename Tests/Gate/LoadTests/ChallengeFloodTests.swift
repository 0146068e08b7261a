import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// May run in parallel with other tests: it measures the memory of its own gate process.
@Suite("Flood of challenges", .timeLimit(.minutes(10)))
struct ChallengeFloodTests {
  @Test("A gate issues 200,000 challenges, or a million, and stores none, while a genuine device logs in")
  func challengeFlood() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      try await GateProcess.serving(plan) { gate in
        let figures = ProcessFigures(of: gate)
        let phone = try Phone(of: gate.authority)
        try await Visitor(to: gate).register(phone)
        try figures.forgetPeak()
        let before = try figures.memory
        let isOver = Watched(false)
        async let logins = Self.logIn(phone, at: gate, until: { isOver.value })
        let connections = Sanitizer.reduce(Exhaustion.isWanted ? 1000 : 200)
        let answers = try await gather(connections, workers: 4) { _ in try await Self.flood(gate, with: 1000) }
        isOver.update { $0 = true }
        #expect(answers.reduce(0, +) == connections * 1000)
        #expect(try await logins >= 5)
        expectMemory(try figures.peakMemory - before, below: 64 << 20, "for \(connections * 1000) challenges")
      }
    }
  }

  /// Requests `count` challenges with pipelining over one connection and returns the number of answers.
  private static func flood(_ gate: GateProcess, with count: Int) async throws -> Int {
    let request = "GET /attest/challenge HTTP/1.1\r\nHost: localhost\r\n"
    let text = String(repeating: request + "\r\n", count: count - 1) + request + "Connection: close\r\n\r\n"
    let client =
      "timeout 60 \(try Places.tool("openssl")) s_client -quiet -verify_return_error "
      + "-CAfile '\(gate.folder.tlsAuthorityPath)' -connect 127.0.0.1:\(gate.port) 2>/dev/null"
    let (_, output, _) = try await ChildProcess.run(
      "/bin/sh", ["-c", "\(client) | grep -ao 'HTTP/1.1 200 OK' | wc -l"], input: Array(text.utf8),
      within: .seconds(70))
    return output.first.flatMap { Int($0) } ?? 0
  }

  /// Logs in repeatedly and returns the number of logins. A refusal is an error.
  private static func logIn(
    _ phone: Phone, at gate: GateProcess, until isOver: @Sendable () -> Bool
  ) async throws -> Int {
    let visitor = try Visitor(to: gate)
    var count = 0
    while !isOver() {
      count += 1
      let socket = try await visitor.open(as: phone, counter: UInt32(count))
      #expect(try await socket.exchange(.text("honest")) == .text("honest"))
      await socket.close()
    }
    return count
  }
}
