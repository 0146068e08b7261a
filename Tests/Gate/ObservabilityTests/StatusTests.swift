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
      #expect(status.ready && status.enforcement == "enforce")
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

  @Test("The status of an older gate without file_served is parsed")
  func older() throws {
    let start = #"{"name":"server","subject":"CN=a","ends_at":"2027-01-01T00:00:00Z","seconds_left":5"#
    for (end, isServed) in [("}", true), (#","file_served":true}"#, true), (#","file_served":false}"#, false)] {
      let state = try JSONDecoder().decode(GateStatus.CertificateState.self, from: Data((start + end).utf8))
      #expect(state.isFileServed == isServed && state.secondsLeft == 5)
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
