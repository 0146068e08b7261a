import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport

/// The status page in a browser. `SALLYPORT_STATUS_SCREENSHOTS=FOLDER scripts/test --lab` writes the pictures of the
/// article Observability.
@Suite("The status page in a browser", .serialized, .timeLimit(.minutes(5)))
struct StatusPictureTests {
  @Test(
    "The page fits 360 px, has health above refusals, is readable in light and dark, and axe-core finds nothing",
    .enabled("scripts/test --lab runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_LAB"] != nil })
  func pictures() async throws {
    try await Places.withTemporaryFolder { folder in
      for (name, page) in try await Self.pages() {
        try page.write(toFile: "\(folder)/\(name).html", atomically: true, encoding: .utf8)
      }
      let pictures = ProcessInfo.processInfo.environment["SALLYPORT_STATUS_SCREENSHOTS"] ?? folder
      let run = try await ChildProcess.run(
        "/usr/bin/python3", [ProjectFile.path("Tests/Gate/Programs/status_page.py"), folder, pictures],
        within: .seconds(200))
      #expect(run.exit == .code(0), "\(run.output.joined(separator: "\n")) \(run.errors.suffix(5))")
      #expect(run.output.last == "all is well")
    }
  }

  /// Returns the page of a gate whose upstreams work, and that of the same gate after one of them has stopped.
  private static func pages() async throws -> [(name: String, page: String)] {
    let (chat, game) = (try await EchoProcess(), try await EchoProcess())
    defer { for echo in [chat, game] { echo.process.kill() } }
    var plan = GatePlan()
    plan.routes = [("/", chat.upstream), ("/game", game.upstream)]
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    plan.further = #"metrics: { listen: "127.0.0.1:0" }"#
    return try await GateProcess.serving(plan) { gate in
      let bench = ObservabilityBench(
        gate: gate, visitor: try Visitor(to: gate), metrics: try await MetricsPort(of: gate))
      var sockets: [Any] = []
      for path in ["/", "/game", "/", "/game"] {
        let (phone, _) = try await bench.registeredPhone()
        sockets.append(
          try await bench.visitor.open(path, phone.credentials(over: bench.visitor.challenge(), counter: 1)))
      }
      let healthy = try await bench.ask("GET", "/status").text
      _ = try await bench.refuseInManyWays()
      game.process.kill()
      _ = try await game.process.exit()
      let (phone, _) = try await bench.registeredPhone()
      for counter in UInt32(1)...3 {
        let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: counter)
        #expect(try await bench.visitor.refusal(of: credentials, at: "/game") == "upstream_unavailable")
      }
      let down = try await bench.ask("GET", "/status").text
      withExtendedLifetime(sockets) {}
      return [("healthy", healthy), ("upstream-down", down)]
    }
  }
}
