import ByteCoding
import Foundation
import GateProcesses
import PostgresServers
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate that obtains its certificate", .serialized, .timeLimit(.minutes(5)))
struct GateTests {
  /// Calls `body` with a pebble that validates at a free port, and the plan of a gate that listens there.
  private func withPebble<R>(
    lifetime: Int, _ body: (Pebble, GatePlan, _ root: String, _ path: String) async throws -> R
  ) async throws -> R {
    try await Places.withTemporaryFolder { path in
      let folder = AuthorityFolder(path: path)
      _ = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
      var plan = GatePlan()
      plan.port = try Places.freePort()
      plan.isEnforcing = false
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      var pebblePlan = Pebble.Plan(validatesAt: plan.port)
      pebblePlan.lifetime = lifetime
      return try await Pebble.serving(pebblePlan, folder) { pebble in
        plan.tls =
          "{ acme: { domains: [gate.example], email: ops@example.com, directory: \"\(pebble.directory)\", "
          + "ca_file: \"\(pebble.authorityFile)\" } }"
        return try await body(pebble, plan, try await pebble.root(in: folder), path)
      }
    }
  }

  private func connect(_ gate: GateProcess, _ root: String) async throws -> ClientConnection {
    try await ClientEngine().connect(
      host: "127.0.0.1", port: gate.port, tls: ClientTLS(authorityFile: root), verifying: "gate.example")
  }

  @Test("A gate gets and renews its certificate while 1,000 sockets stay open; a killed one has it at once again")
  func openSockets() async throws {
    try await EchoProcess.serving { upstream in
      // Renewed after nine seconds; the rest is the time of a busy machine for the renewal and for the second start.
      try await withPebble(lifetime: 18) { _, plan, root, path in
        var plan = plan
        plan.routes = [("/", upstream)]
        var gate = try await GateProcess(plan, in: path + "/gate")
        defer { gate.process.kill() }
        _ = try await gate.process.errors.first("the certificate") { $0.contains(#""message":"certificate obtained""#) }
        let (engine, tls) = (try ClientEngine(), try ClientTLS(authorityFile: root))
        let port = gate.port
        var sockets: [ClientWebSocket] = []
        for _ in 0..<Sanitizer.reduce(1000) {
          let connection = try await engine.connect(host: "127.0.0.1", port: port, tls: tls, verifying: "gate.example")
          sockets.append(try await connection.upgrade("/", host: "gate.example"))
        }
        let before = try await Self.served(by: gate)
        let isObtained: @Sendable (String) -> Bool = { $0.contains(#""message":"certificate obtained""#) }
        let orders = gate.process.errors.lines.count(where: isObtained)
        _ = try await gate.process.errors.first(orders + 1, "the renewal", within: .seconds(40), where: isObtained)
        try await Self.eventually { try await Self.served(by: gate) != before }
        for socket in sockets { #expect(try await socket.exchange(.text("still open")) == .text("still open")) }
        let status = try await ChildProcess.run(
          Places.product("sallyport"), ["status", "-c", path + "/gate/gate.yaml"]
        ).output.joined(separator: "\n")
        #expect(status.contains("renewed by ACME at "), "\(status)")

        try await gate.crash()
        gate = try await GateProcess(plan, in: path + "/gate")
        _ = try await connect(gate, root)
      }
    }
  }

  /// Waits until `condition` is true: the log comes a moment before the listener's change.
  private static func eventually(_ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while try await !condition() {
      guard .now < deadline else { throw Unexpected("the condition did not become true") }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  /// The certificate that a client gets, PEM.
  private static func served(by gate: GateProcess) async throws -> String {
    let seen = try await ChildProcess.run(
      Places.tool("openssl"), ["s_client", "-connect", "127.0.0.1:\(gate.port)", "-servername", "gate.example"])
    let lines = seen.output.drop { !$0.hasPrefix("-----BEGIN CERTIFICATE") }.prefix { !$0.hasPrefix("-----END") }
    guard !lines.isEmpty else { throw Unexpected("no certificate: \(seen)") }
    return lines.joined()
  }

  @Test("Before its first certificate a gate is not ready, refuses handshakes and says why")
  func noCertificate() async throws {
    var plan = GatePlan()
    plan.tls = #"{ acme: { domains: [gate.example], directory: "https://localhost:1/dir" } }"#
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    try await GateProcess.serving(plan) { gate in
      let warning = try await gate.process.errors.first("a warning") { $0.contains("no certificate yet") }
      #expect(warning.contains("gate.example"))
      let failure = try await gate.process.errors.first("the failure") { $0.contains("certificate order failed") }
      #expect(failure.contains(#""code":"unreachable""#) && failure.contains("tls.acme.directory"))
      await #expect(throws: ClientError.self) {
        try await ClientEngine().connect(
          host: "127.0.0.1", port: gate.port, tls: ClientTLS(authorityFile: gate.folder.tlsAuthorityPath),
          verifying: "gate.example")
      }
      let handshake = try await gate.process.errors.first("a handshake") { $0.contains("TLS handshake failed") }
      #expect(handshake.contains("no certificate yet"))
      let admin = try await ClientEngine().connect(socket: gate.folder.path + "/admin.sock")
      let ready = try await admin.send(
        "GET", "/readyz?verbose", headers: HeaderFields([.init(name: "Host", value: "localhost")]))
      #expect(ready.status == 503)
      let checks = String(decoding: ready.body, as: UTF8.self)
      #expect(
        checks.contains(
          /\[-\] certificates: waiting for the first certificate: localhost:1 cannot be reached.*; next attempt at 2/),
        "\(checks)")
      let metrics = try await admin.send(
        "GET", "/metrics", headers: HeaderFields([.init(name: "Host", value: "localhost")]))
      let text = String(decoding: metrics.body, as: UTF8.self)
      #expect(text.contains(#"sallyport_acme_failures_total{code="unreachable"} 1"#), "\(text)")
      // Counters exist before the first event, for every code.
      #expect(text.contains(#"sallyport_acme_failures_total{code="rateLimited"} 0"#))
      #expect(text.contains(#"sallyport_acme_certificates_total{origin="ordered"} 0"#))
      #expect(text.contains("sallyport_acme_certificate_missing 1"))
    }
  }

  @Test("A reload from certificate files to ACME serves the old certificate until the first new one arrives")
  func fromFiles() async throws {
    try await withPebble(lifetime: 3600) { pebble, plan, root, path in
      var old = plan
      old.tls = nil
      let gate = try await GateProcess(old, in: path + "/gate")
      defer { gate.process.kill() }
      let file = path + "/gate/gate.yaml"
      let before = try await Self.served(by: gate)
      let text = try String(contentsOfFile: file, encoding: .utf8)
      func write(_ tls: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        try lines.map { $0.hasPrefix("tls:") ? "tls: \(tls)" : String($0) }.joined(separator: "\n")
          .write(toFile: file, atomically: true, encoding: .utf8)
      }
      let wrong = #"{ acme: { domains: [gate.example], directory: "https://localhost:1/dir" } }"#
      for (tls, sign) in [(wrong, "certificate order failed"), (plan.tls ?? "", "certificate obtained")] {
        #expect(try await Self.served(by: gate) == before)
        try write(tls)
        let answer = try await ChildProcess.run(Places.product("sallyport"), ["reload", "-c", file])
        #expect(answer.exit == .code(0), "\(answer)")
        _ = try await gate.process.errors.first(sign) { $0.contains(sign) }
      }
      try await Self.eventually { try await Self.served(by: gate) != before }
      _ = try await connect(gate, root)
    }
  }

  @Test("check asks the directory, and names what is wrong with it")
  func check() async throws {
    try await withPebble(lifetime: 3600) { pebble, plan, _, path in
      for (old, new, text) in [
        ("", "", "tls.acme.directory: \(pebble.directory) answers; its terms of service: data:text/plain"),
        ("/dir\"", "/directory\"", "is not the directory of an ACME server"),
        (", ca_file: \"\(pebble.authorityFile)\"", "", "set tls.acme.ca_file to its CA"),
      ] {
        var plan = plan
        plan.tls = plan.tls?.replacingOccurrences(of: old, with: new)
        let folder = path + "/\(old.count)"
        // A gate writes the configuration; `check` then reads it.
        let gate = try await GateProcess(plan, in: folder)
        gate.process.kill()
        let answer = try await ChildProcess.run(Places.product("sallyport"), ["check", "-c", folder + "/gate.yaml"])
        let lines = (answer.output + answer.errors).joined(separator: "\n")
        #expect(lines.contains(text), "\(lines)")
      }
    }
  }

  @Test("Of two gates on one PostgreSQL, one orders and both serve, whichever gets the validation")
  func shared() async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL()
    try await withPebble(lifetime: 3600) { _, plan, root, path in
      // The first gate orders, and the validation reaches the second.
      var first = plan
      first.storeURL = url
      first.port = 0
      var second = plan
      second.storeURL = url
      let one = try await GateProcess(first, in: path + "/one")
      defer { one.process.kill() }
      let two = try await GateProcess(second, in: path + "/two")
      defer { two.process.kill() }
      _ = try await one.process.errors.first("the certificate") { $0.contains(#""message":"certificate obtained""#) }
      _ = try await two.process.errors.first("the challenge") { $0.contains("ACME challenge answered") }
      _ = try await two.process.errors.first("its adoption") { $0.contains("certificate of another gate adopted") }
      for gate in [one, two] { _ = try await connect(gate, root) }
      #expect(try await Self.served(by: one) == Self.served(by: two))
    }
  }
}
