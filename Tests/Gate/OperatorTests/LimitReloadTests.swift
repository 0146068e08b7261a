import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Limits that change while a gate serves", .serialized, .timeLimit(.minutes(5)))
struct LimitReloadTests {
  /// Returns the status of `GET /attest/challenge`.
  private func challenge(_ bench: AdminBench) async throws -> Int {
    try await bench.visitor.connection().send(
      "GET", "/attest/challenge", headers: HeaderFields([.init(name: "Host", value: "localhost")])
    ).status
  }

  private func refused(_ bench: AdminBench) async throws -> String? {
    try await bench.visitor.refusal(of: HeaderFields())
  }

  @Test("A reload raises, lowers, sets and removes limits for later requests; open sockets stay")
  func reloads() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      plan.isEnforcing = false
      try await GateProcess.serving(plan) { gate in
        let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
        let file = bench.config[1]
        let bare = try String(contentsOfFile: file, encoding: .utf8).replacing(/limits: .*/, with: "")
        func limit(_ limits: String) async throws {
          try (bare + "limits: \(limits)\n").write(toFile: file, atomically: true, encoding: .utf8)
          let answer = try await sallyport(["reload"] + bench.config)
          #expect(answer.status == 0 && answer.output == ["reloaded"] && answer.errors == [])
        }
        let first = try await bench.visitor.open()

        try await limit("{ global_sessions: 2, per_ip: { challenges: 2/1h } }")
        #expect(try await [challenge(bench), challenge(bench), challenge(bench)] == [200, 200, 429])
        let second = try await bench.visitor.open()
        #expect(try await refused(bench) == "overloaded")

        // The limit is below the number of open sessions: new ones are refused, open ones stay.
        try await limit("{ global_sessions: 1, per_ip: { challenges: 2/1h, upgrades: 3/1h } }")
        #expect(try await challenge(bench) == 429, "a reload must not reset an address's spent rate")
        #expect(try await refused(bench) == "overloaded")
        for socket in [first, second] { #expect(try await socket.exchange(.text("x")) == .text("x")) }

        try await limit("{ global_sessions: 100 }")
        #expect(try await challenge(bench) == 200)
        // Connections that were already open count too.
        try await limit("{ global_sessions: 100, per_ip: { connections: 2 } }")
        await #expect(throws: ClientError.self) { try await bench.visitor.open() }
        try await limit("{ global_sessions: 100 }")
        let third = try await bench.visitor.open()
        let fourth = try await bench.visitor.open()
        for socket in [first, second, third, fourth] {
          #expect(try await socket.exchange(.text("x")) == .text("x"))
        }
      }
    }
  }
}
