import AppAttest
import AttestGate
import Foundation
import GateProcesses
import Wire
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The metrics of a running gate", .serialized, .timeLimit(.minutes(5)))
struct MetricsTests {
  @Test("The metrics count registrations, admissions, refusals and closed sessions")
  func counting() async throws {
    try await ObservabilityBench.serving { bench in
      let before = try await bench.metrics.scrape()
      #expect(before.value("sallyport_sessions_active") == 0)
      #expect(before.value("sallyport_store_up") == 1)
      let (phone, _) = try await bench.registeredPhone()
      let registered = try await bench.metrics.scrape()
      #expect(registered.value("sallyport_registrations_total", ["result": "registered", "code": ""]) == 1)
      #expect(registered.value("sallyport_verification_duration_seconds_count", ["kind": "attestation"]) == 1)

      let socket = try await bench.visitor.open(as: phone, counter: 1)
      _ = try await socket.exchange(.text("twelve bytes"))
      let open = try await bench.metrics.scrape()
      let byAssertion = ["result": "admitted", "method": "app-attest", "code": ""]
      #expect(open.value("sallyport_admissions_total", byAssertion) == 1)
      #expect(open.value("sallyport_sessions_active") == 1)
      #expect(open.value("sallyport_upstream_handshake_duration_seconds_count", ["route": "/"]) == 1)
      // The payload, a header of two bytes, and from the client a masking key of four bytes.
      #expect(open.value("sallyport_session_bytes_total", ["from": "client"]) == 18)
      #expect(open.value("sallyport_session_bytes_total", ["from": "upstream"]) == 14)

      #expect(try await bench.visitor.refusal(of: HeaderFields()) == "no_credentials")
      let refused = try await bench.metrics.scrape()
      #expect(refused.value("sallyport_refusals_total", ["code": "no_credentials", "status": "401"]) == 1)
      let unproven = ["result": "refused", "method": "", "code": "no_credentials"]
      #expect(refused.value("sallyport_admissions_total", unproven) == 1)
      #expect(refused.value("sallyport_admissions_total", byAssertion) == 1)

      await socket.close()
      let closed = try await bench.metrics.scrape {
        $0.value("sallyport_session_closes_total", ["end": "closed_by_client"]) == 1
          && $0.value("sallyport_sessions_active") == 0
      }
      #expect(closed.value("sallyport_session_closes_total", ["end": "closed_by_client"]) == 1)
      #expect(closed.value("sallyport_sessions_active") == 0)
      for sample in before.samples where sample.kind == "counter" || sample.name.hasSuffix("_bucket") {
        let later = closed.value(sample.name, sample.labels) ?? -1
        #expect(later >= Double(sample.value) ?? .infinity, "\(sample.name) fell")
      }
    }
  }

  @Test("Each counter is exported with 0 from the start, for all values of its labels, and no request adds another")
  func zeros() async throws {
    try await ObservabilityBench.serving { bench in
      let start = try await bench.metrics.scrape()
      for code in GateRefusalCode.allCases {
        let labels = ["code": code.rawValue, "status": "\(code.definition.status)"]
        #expect(start.value("sallyport_refusals_total", labels) == 0, "\(code)")
      }
      for result in ["connected", "refused", "server_error", "unreachable", "timed_out", "misbehaved"] {
        #expect(start.value("sallyport_upstream_attempts_total", ["route": "/", "result": result]) == 0, "\(result)")
      }
      for code in ["per_ip", "proxy_untrusted", "proxy_header", "proxy_time", "plain_http", "unused"] {
        #expect(start.value("sallyport_connections_refused_total", ["code": code]) == 0, "\(code)")
      }
      _ = try await bench.refuseInManyWays()
      await (try await bench.visitor.open(as: bench.registeredPhone().phone, counter: 1)).close()
      let later = try await bench.metrics.scrape {
        $0.value("sallyport_session_closes_total", ["end": "closed_by_client"]) ?? 0 > 0
      }
      let known = Set(
        start.samples.filter { $0.kind == "counter" }.map {
          [$0.name] + $0.labels.sorted { $0.key < $1.key }.map(\.value)
        })
      for sample in later.samples where sample.kind == "counter" {
        #expect(known.contains([sample.name] + sample.labels.sorted { $0.key < $1.key }.map(\.value)), "\(sample)")
      }
      #expect(later.value("sallyport_upstream_attempts_total", ["route": "/", "result": "connected"]) == 2)
    }
  }

  @Test("The metrics report a successful or refused reload until the next one")
  func reloads() async throws {
    try await ObservabilityBench.serving { bench in
      #expect(try await bench.ask("POST", "/v1/reload").status == 200)
      let done = try await bench.metrics.scrape()
      #expect(done.value("sallyport_reloads_total", ["result": "done"]) == 1)
      #expect(done.value("sallyport_config_last_reload_successful") == 1)
      let sound = try Data(contentsOf: URL(fileURLWithPath: bench.configuration))
      try (sound + Data("nonsense: 1\n".utf8)).write(to: URL(fileURLWithPath: bench.configuration))
      #expect(try await bench.ask("POST", "/v1/reload").status == 409)
      let refused = try await bench.metrics.scrape()
      #expect(refused.value("sallyport_reloads_total", ["result": "refused"]) == 1)
      #expect(refused.value("sallyport_config_last_reload_successful") == 0)
      let time = "sallyport_config_last_reload_success_timestamp_seconds"
      #expect(refused.value(time) == done.value(time))
      try sound.write(to: URL(fileURLWithPath: bench.configuration))
      #expect(try await bench.ask("POST", "/v1/reload").status == 200)
      #expect(try await bench.metrics.scrape().value("sallyport_config_last_reload_successful") == 1)
    }
  }

  @Test("No label contains a key, address, path or request id, for any data of clients")
  func labels() async throws {
    try await ObservabilityBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(
        "/secret-place?token=x", phone.credentials(over: bench.visitor.challenge(), counter: 1))
      let credentials = try phone.credentials(over: await bench.visitor.challenge(), counter: 1)
      #expect(try await bench.visitor.refusal(of: credentials) == "counter_replayed")
      #expect(try await bench.ask("POST", "/v1/keys/\(hash)/revoke").status == 200)
      let scrape = try await bench.metrics.scrape()
      #expect(scrape.value("sallyport_refusals_total", ["code": "counter_replayed", "status": "401"]) == 1)
      let secrets = [
        phone.keyID, String(hash.prefix(6)), "127.0.0.1", "secret", "token=",
        try #require(socket.response.headers.first("X-Request-Id")), GatePlan.teamID, bench.gate.folder.path,
      ]
      for secret in secrets { #expect(!scrape.text.contains(secret), "\(secret) is exposed") }
      // Fixed words of the program, the bounds of buckets and the paths of routes.
      for (name, value) in scrape.samples.flatMap(\.labels) where name != "version" {
        #expect(value.wholeMatch(of: /[a-z0-9_+.\/-]{0,40}|\+Inf/) != nil, "\(name)=\(value)")
      }
    }
  }

  @Test(
    "The metrics pass the lint of Prometheus' own tool",
    .enabled(
      if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool"), "Debian: apt-get install prometheus"))
  func lint() async throws {
    try await ObservabilityBench.serving { bench in
      _ = try await bench.registeredPhone()
      let text = try await bench.metrics.scrape().text
      let (exit, output, errors) = try await ChildProcess.run(
        "/usr/bin/promtool", ["check", "metrics"], input: Array(text.utf8))
      #expect(exit == .code(0), "\(output) \(errors)")
    }
  }
}

@Suite("The metrics listener", .serialized, .timeLimit(.minutes(5)))
struct MetricsListenerTests {
  @Test("The listener answers metrics and health without a token, and nothing else")
  func bounds() async throws {
    var plan = GatePlan()
    plan.further = #"metrics: { listen: "127.0.0.1:0" }"#
    try await GateProcess.serving(plan) { gate in
      let metrics = try await MetricsPort(of: gate)
      #expect(try await metrics.ask("GET", "/livez").text == "ok\n")
      #expect(
        try await metrics.ask("GET", "/readyz?verbose").text
          == "[+] store: ok\n[+] listener: ok\n[+] enforcement: enforce\n[+] certificates: ok\n"
          + "[+] upstream /: not tried yet\nready\n")
      #expect(try await metrics.ask("GET", "/metrics").status == 200)
      for target in ["/v1/keys", "/v1/sessions", "/v1/status", "/status", "/attest/challenge", "/"] {
        #expect(try await metrics.ask("GET", target).status == 404, "\(target)")
      }
      #expect(try await metrics.ask("POST", "/v1/drain").status == 404)
      #expect(try await metrics.ask("POST", "/metrics").status == 405)
      #expect(try await Visitor(to: gate).challenge().isEmpty == false)
    }
  }

  @Test("If the listener's address is in use, the start fails with status 71 and leaves no admin socket")
  func occupied() async throws {
    var plan = GatePlan()
    plan.further = #"metrics: { listen: "127.0.0.1:0" }"#
    try await GateProcess.serving(plan) { gate in
      let port = try await MetricsPort(of: gate).port
      let (exit, _, errors) = try await ChildProcess.run(
        Places.product("sallyport"),
        [
          "run", "-c", gate.folder.path + "/gate.yaml", "--set", "metrics.listen=127.0.0.1:\(port)",
          "--set", "admin.listen=unix:\(gate.folder.path)/other.sock",
        ])
      #expect(exit == .code(71))
      #expect(
        errors.contains { $0.hasPrefix("error: metrics.listen: cannot listen at 127.0.0.1:\(port)") }, "\(errors)")
      #expect(!FileManager.default.fileExists(atPath: gate.folder.path + "/other.sock"))
    }
  }
}
