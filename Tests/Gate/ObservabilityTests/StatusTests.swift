import AppAttest
import AttestGate
import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The status of a running gate", .serialized, .timeLimit(.minutes(5)))
struct StatusTests {
  @Test("The status has sessions, decisions, refusals, certificate, store and configuration, as JSON and as a page")
  func whole() async throws {
    try await ObservabilityBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      for _ in 1...2 { _ = try await bench.visitor.refusal(of: HeaderFields()) }

      let answer = try await bench.ask("GET", "/v1/status")
      let status = try #require(AdminJSON.value(GateStatus.self, in: answer.body))
      #expect(status.ready && status.enforcement == .enforce)
      #expect(status.sessions.open == 1 && status.sessions.newest.map(\.key) == [hash])
      #expect(status.activity.lastMinute == .init(admitted: 1, refused: 2, registered: 1))
      #expect(status.activity.lastHour == status.activity.lastMinute)
      #expect(status.refusals == [.init(code: "no_credentials", status: "401", lastHour: 2, total: 2)])
      #expect(status.certificates.map(\.name) == ["server"])
      #expect(status.store.healthy && status.store.place.hasSuffix("/state.db"))
      #expect(status.configuration.current && status.configuration.fault == nil)

      let page = try await bench.ask("GET", "/status")
      #expect(page.headers.first("Content-Type") == "text/html; charset=utf-8")
      let policy = try #require(page.headers.first("Content-Security-Policy"))
      #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-"))
      for word in [String(hash.prefix(16)), "no_credentials", "ready", "state.db"] { #expect(page.text.contains(word)) }
      for word in ["<script", "http://", "https://", "style=\"", "onload", "src="] {
        #expect(!page.text.contains(word))
      }
      #expect(try await bench.ask("GET", "/status", accept: "application/json").text.hasPrefix("{"))
      await socket.close()
    }
  }

  @Test("An upstream that does not answer is in the status, in /readyz?verbose, in the metrics and on the page")
  func upstream() async throws {
    let echo = try await EchoProcess()
    defer { echo.process.kill() }
    var plan = GatePlan()
    plan.routes = [("/", echo.upstream), ("/down", "ws://127.0.0.1:1")]
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    plan.further = #"metrics: { listen: "127.0.0.1:0" }"#
    try await GateProcess.serving(plan) { gate in
      let bench = ObservabilityBench(
        gate: gate, visitor: try Visitor(to: gate), metrics: try await MetricsPort(of: gate))
      let (phone, _) = try await bench.registeredPhone()
      func upstreams() async throws -> [GateStatus.UpstreamState] {
        let status = AdminJSON.value(GateStatus.self, in: try await bench.ask("GET", "/v1/status").body)
        return try #require(status?.upstreams)
      }
      func failing(_ route: String) async throws -> Double? {
        try await bench.metrics.scrape().value("sallyport_upstream_failing", ["route": route])
      }
      #expect(try await upstreams().map(\.condition) == [.untried, .untried])
      #expect(try await failing("/down") == 0)

      let socket = try await bench.visitor.open(as: phone, counter: 1)
      defer { withExtendedLifetime(socket) {} }
      let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: 2)
      #expect(try await bench.visitor.refusal(of: credentials, at: "/down") == "upstream_unavailable")
      let states = try await upstreams()
      #expect(states.map(\.route) == ["/", "/down"] && states.map(\.condition) == [.available, .failing])
      #expect(states[0].connected == 1 && states[0].lastSuccess != nil && states[0].lastFailure == nil)
      #expect(states[1].failed == 1 && states[1].recentFailures == 1 && states[1].lastSuccess == nil)
      #expect(states[1].lastFailureReason?.hasPrefix("unreachable: ") == true, "\(states[1])")
      #expect(try await failing("/") == 0)
      #expect(try await failing("/down") == 1)

      let ready = try await bench.ask("GET", "/readyz?verbose")
      #expect(ready.status == 200 && ready.text.contains("[+] upstream /: ok, last success 20"), "\(ready.text)")
      #expect(ready.text.contains("[+] upstream /down: WARNING: 1 of the last 1 attempts failed, last failure 20"))
      #expect(ready.text.contains("(unreachable)") && !ready.text.contains("127.0.0.1"))
      let json = try await bench.ask("GET", "/readyz?verbose", accept: "application/json").text
      #expect(json.components(separatedBy: #""warning":true"#).count == 2)

      let page = try await bench.ask("GET", "/status").text
      #expect(page.contains(#"<span class="pill warn">ready, with warnings</span>"#))
      #expect(page.contains("Upgrades fail: 1 of the last 1 attempts to reach the upstream of /down"))
      let command = try await bench.sallyport(["status"])
      #expect(command.status == 0 && command.output[0].contains(": ready, with warnings, up "))
      #expect(command.output.contains { $0.contains("/down to ws://127.0.0.1:1: WARNING: 1 of the last 1") })
    }
  }

  @Test("The page has health above refusals, and all reasons of refusals")
  func order() async throws {
    try await ObservabilityBench.serving { bench in
      let reasons = try await bench.refuseInManyWays()
      #expect(reasons.count > 8)
      let page = try await bench.ask("GET", "/status").text
      let health = try #require(page.range(of: "<h2>Health</h2>"))
      let refusals = try #require(page.range(of: "<h2>Refusals by reason</h2>"))
      #expect(health.lowerBound < refusals.lowerBound)
      for code in reasons { #expect(page.contains("<code>\(code)</code>"), "\(code)") }
      let output = try await bench.sallyport(["status"]).output
      #expect(output.count { $0.hasPrefix("  refused ") } == 8)
      #expect(output.contains { $0.hasSuffix("and \(reasons.count - 8) more reasons: --json lists all") }, "\(output)")
    }
  }

  @Test("The status of an older gate without file_served is parsed")
  func older() throws {
    let start = #"{"name":"server","subject":"CN=a","ends_at":"2027-01-01T00:00:00Z","seconds_left":5"#
    for (end, isServed) in [("}", true), (#","file_served":true}"#, true), (#","file_served":false}"#, false)] {
      let state = try JSONDecoder().decode(GateStatus.CertificateState.self, from: Data((start + end).utf8))
      #expect(state.isFileServed == isServed && state.secondsLeft == 5 && !state.endsSoon)
    }
  }

  @Test("The command sallyport status exits 0 if the gate is ready, 1 if not, and 69 if no gate is running")
  func command() async throws {
    try await ObservabilityBench.serving { bench in
      let ready = try await bench.sallyport(["status"])
      #expect(ready.status == 0)
      #expect(ready.output.first?.hasPrefix("sallyport ") == true && ready.output[0].contains(": ready, up "))
      #expect(ready.output.contains { $0.hasPrefix("  certificate") && $0.contains("expires in ") })
      let json = try await bench.sallyport(["status", "--json"])
      #expect(json.status == 0 && json.output.count == 1)
      #expect(try JSONDecoder().decode(GateStatus.self, from: Data(json.output[0].utf8)).ready)

      bench.gate.process.send(SIGKILL)
      _ = try await bench.gate.process.exit()
      let absent = try await bench.sallyport(["status"])
      #expect(absent.status == 69 && absent.output.isEmpty)
      #expect(absent.errors.count == 2 && absent.errors[0].hasPrefix("error: no gate is running at unix:"))
      #expect(absent.errors[1].hasPrefix("hint: "))
    }
  }

  @Test("A stopping gate is not ready, with exit status 1")
  func leaving() async throws {
    var plan = GatePlan()
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    plan.further = "shutdown: { unready_delay: 60s }"
    try await GateProcess.serving(plan) { gate in
      gate.process.send(SIGTERM)
      _ = try await gate.process.errors.first("the stop") { $0.contains(#""message":"stopping""#) }
      let (exit, output, _) = try await ChildProcess.run(
        Places.product("sallyport"), ["status", "-c", gate.folder.path + "/gate.yaml"])
      #expect(exit == .code(1))
      #expect(output.first?.contains(": not ready, up ") == true)
    }
  }

  @Test("The status shows the reason of a refused reload, with the text escaped")
  func fault() async throws {
    try await ObservabilityBench.serving { bench in
      var text = try String(contentsOfFile: bench.configuration, encoding: .utf8)
      text += "\"<script>alert(1)</script>\": 1\n"
      try text.write(toFile: bench.configuration, atomically: true, encoding: .utf8)
      #expect(try await bench.ask("POST", "/v1/reload").status == 409)
      let page = try await bench.ask("GET", "/status").text
      #expect(page.contains("The configuration was not reloaded"))
      #expect(page.contains("&lt;script&gt;") && !page.contains("<script"))
    }
  }

  @Test("Changes requested by web pages are refused")
  func foreignOrigin() async throws {
    try await ObservabilityBench.serving { bench in
      let connection = try await ClientEngine().connect(socket: bench.gate.folder.path + "/admin.sock")
      let headers = HeaderFields([
        .init(name: "Host", value: "localhost"), .init(name: "Origin", value: "http://localhost"),
      ])
      let answer = try await connection.send("POST", "/v1/drain", headers: headers)
      #expect(answer.status == 403)
      #expect(try await bench.sallyport(["status"]).status == 0)
    }
  }
}
