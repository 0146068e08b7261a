import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// The console in a browser. `SALLYPORT_CONSOLE_SCREENSHOTS=FOLDER scripts/test --lab` writes a picture of each page.
@Suite("The console in a browser", .serialized, .timeLimit(.minutes(5)))
struct ConsolePictureTests {
  @Test(
    "A person signs in, watches refusals arrive and revokes a key by keyboard; pages fit, and axe-core finds nothing",
    .enabled("scripts/test --lab runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_LAB"] != nil })
  func pictures() async throws {
    let (one, two) = (try await EchoProcess(), try await EchoProcess())
    defer { for echo in [one, two] { echo.process.kill() } }
    var plan = GatePlan()
    plan.routes = [("/", one.upstream + ", " + two.upstream), ("/game", one.upstream)]
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    try await GateProcess.serving(plan) { gate in
      let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
      let (phone, hash) = try await bench.registeredPhone()
      var sockets = [try await bench.visitor.open(as: phone, counter: 5)]
      for _ in 0..<3 {
        let (phone, _) = try await bench.registeredPhone()
        sockets.append(try await bench.visitor.open(as: phone, counter: 1))
      }
      let old = try phone.credentials(over: await bench.visitor.challenge(), counter: 5)
      _ = try await bench.visitor.refusal(of: old)
      for path in ["/attest/none", "/plain"] { _ = try await bench.visitor.ask("GET", path) }
      let unknown = try Phone(of: gate.authority)
      _ = try await bench.visitor.refusal(of: unknown.credentials(over: bench.visitor.challenge(), counter: 1))
      let console = try await ConsoleProcess(bench, ["--role", "admin"])
      defer { console.process.kill() }
      try await Places.withTemporaryFolder { folder in
        let pictures = ProcessInfo.processInfo.environment["SALLYPORT_CONSOLE_SCREENSHOTS"] ?? folder
        let run = try await ChildProcess.run(
          "/usr/bin/python3",
          [ProjectFile.path("Tests/Gate/Programs/console_page.py"), console.address, hash, gate.baseURL, pictures],
          within: .seconds(240))
        #expect(run.exit == .code(0), "\(run.output.joined(separator: "\n")) \(run.errors.suffix(8))")
        #expect(run.output.last == "all is well")
      }
      #expect(try await sockets[0].ending(since: .now).code == 3003)
    }
  }
}
