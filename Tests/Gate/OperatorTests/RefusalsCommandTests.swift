import Foundation
import GateProcesses
import GateService
import Glibc
import SimulatedDevice
import TestSupport
import Testing
import Transport

@Suite("The command refusals", .serialized, .timeLimit(.minutes(5)))
struct RefusalsCommandTests {
  @Test("The command lists refusals, the newest first, and filters them")
  func lists() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      _ = try await bench.visitor.open(as: phone, counter: 5)
      _ = try await bench.visitor.refusal(of: phone.credentials(over: bench.visitor.challenge(), counter: 5))
      _ = try await bench.visitor.ask("GET", "/attest/none")
      let all = try await sallyport(["refusals", "--json"] + bench.config)
      let found = try all.output.map { try JSONDecoder().decode(RefusalDescription.self, from: Data($0.utf8)) }
      #expect(found.map(\.code) == ["not_found", "counter_replayed"])
      let rows = try await sallyport(["refusals", "--key", phone.keyID] + bench.config)
      #expect(rows.output.count == 1)
      let cells = try #require(rows.output.first).split(separator: "\t", omittingEmptySubsequences: false)
      #expect(cells.count == 10 && cells[1] == "counter_replayed" && cells[5] == hash && cells[7] == "127.0.0.1")
      #expect(try await sallyport(["refusals", "--limit", "1"] + bench.config).output.count == 1)
      for arguments in [["--limit", "0"], ["--key", "x"]] {
        #expect(try await sallyport(["refusals"] + arguments + bench.config).status == 64)
      }
      let refused = try await sallyport(["refusals", "--code", String(repeating: "a", count: 200)] + bench.config)
      #expect(refused.status == 64 && refused.isFailure)
      #expect(refused.errors.last == "hint: see the --help of the command")
    }
  }

  @Test("With --follow, later refusals follow earlier ones, each once")
  func follows() async throws {
    try await AdminBench.serving { bench in
      for path in ["/attest/a", "/attest/b"] { _ = try await bench.visitor.ask("GET", path) }
      let follower = try ChildProcess(
        try Places.product("sallyport"), ["refusals", "--follow", "--json"] + bench.config)
      defer { follower.kill() }
      _ = try await follower.output.first("the earlier refusals") { $0.contains("/attest/b") }
      for path in ["/attest/c", "/attest/d"] { _ = try await bench.visitor.ask("GET", path) }
      _ = try await follower.output.first("the later refusals") { $0.contains("/attest/d") }
      follower.send(SIGINT)
      _ = try await follower.exit()
      let paths = try await follower.output.all().map {
        try JSONDecoder().decode(RefusalDescription.self, from: Data($0.utf8)).path
      }
      #expect(paths == ["/attest/a", "/attest/b", "/attest/c", "/attest/d"])
    }
  }

  @Test("With --follow, the command goes on when the gate restarts, and says once that it waits")
  func restarts() async throws {
    try await Places.withTemporaryFolder { folder in
      var plan = GatePlan()
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      let gate = try await GateProcess(plan, in: folder + "/gate")
      let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
      _ = try await bench.visitor.ask("GET", "/attest/a")
      let follower = try ChildProcess(
        try Places.product("sallyport"), ["refusals", "--follow", "--json"] + bench.config)
      defer { follower.kill() }
      _ = try await follower.output.first("the earlier refusal") { $0.contains("/attest/a") }
      try await gate.crash()
      _ = try await follower.errors.first("the note") { $0.hasPrefix("waiting for the gate: ") }
      let next = try await GateProcess(plan, in: folder + "/gate")
      defer { next.process.kill() }
      _ = try await Visitor(to: next).ask("GET", "/attest/b")
      _ = try await follower.output.first("the later refusal") { $0.contains("/attest/b") }
      follower.send(SIGINT)
      _ = try await follower.exit()
      #expect(try await follower.errors.all().count == 1)
      #expect(try await follower.output.all().count == 2)
    }
  }
}
