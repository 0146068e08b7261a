import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport

/// Another vendor's proxy, configured as the documentation describes, which asks a gate about each request.
enum OuterProxy: String, CaseIterable, CustomTestStringConvertible {
  case nginx
  case caddy
  case haproxy

  var testDescription: String { rawValue }

  /// Starts the proxy in front of `gate` and of `backend`, a port. The proxy uses the gate's certificate.
  fileprivate func start(_ gate: RunningGate, backend: Int) async throws -> RunningGate {
    let port = try Places.freePort()
    let process =
      switch self {
      case .nginx: try startNginx(gate, backend, port)
      case .caddy: try startCaddy(gate, backend, port)
      case .haproxy: try startHAProxy(gate, backend, port)
      }
    let proxy = RunningGate(process: process, folder: gate.folder, port: port)
    try await proxy.waitUntilItListens()
    return proxy
  }

  private func startNginx(_ gate: RunningGate, _ backend: Int, _ port: UInt16) throws -> ChildProcess {
    let site = try Guide.service("ForwardAuth").block("nginx").replacing([
      "listen 443 ssl;": "listen 127.0.0.1:\(port) ssl;", "app.example.com": "localhost",
      "/etc/ssl/app/fullchain.pem": gate.folder + "/server.pem",
      "/etc/ssl/app/privkey.pem": gate.folder + "/server.key",
      "/etc/ssl/certs/ca-certificates.crt": gate.certificateAuthority,
      "gate.example.com:6200": "localhost:\(gate.port)", "127.0.0.1:8080": "127.0.0.1:\(backend)",
    ])
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(gate.folder)/\($0);" }
    let configuration = """
      daemon off;
      master_process off;
      pid \(gate.folder)/nginx.pid;
      error_log stderr;
      events {}
      http {
      access_log off;
      \(temporary.joined(separator: "\n"))
      \(site)
      }
      """
    try configuration.write(toFile: gate.folder + "/nginx.conf", atomically: true, encoding: .utf8)
    return try ChildProcess("/usr/sbin/nginx", ["-c", gate.folder + "/nginx.conf", "-e", "stderr"])
  }

  private func startCaddy(_ gate: RunningGate, _ backend: Int, _ port: UInt16) throws -> ChildProcess {
    let site = try Guide.service("ForwardAuth").block("caddy").replacing([
      "app.example.com {": "https://localhost:\(port) {\n\ttls \(gate.folder)/server.pem \(gate.folder)/server.key",
      "gate.example.com:6200": "localhost:\(gate.port)", "127.0.0.1:8080": "127.0.0.1:\(backend)",
    ])
    let configuration = "{\n\tadmin off\n\tauto_https off\n}\n" + site
    try configuration.write(toFile: gate.folder + "/Caddyfile", atomically: true, encoding: .utf8)
    return try ChildProcess(
      Places.tool("caddy"), ["run", "--adapter", "caddyfile", "--config", gate.folder + "/Caddyfile"],
      environment: [
        "SSL_CERT_FILE": gate.certificateAuthority, "HOME": gate.folder, "XDG_DATA_HOME": gate.folder,
        "XDG_CONFIG_HOME": gate.folder,
      ])
  }

  private func startHAProxy(_ gate: RunningGate, _ backend: Int, _ port: UInt16) throws -> ChildProcess {
    let guide = try Guide.service("ForwardAuth")
    // Abstract sockets are global to the machine, so each proxy uses a name with its port.
    let socket = "abns@attest-\(port)"
    let configuration = try guide.block("haproxy").replacing([
      "bind :443": "bind 127.0.0.1:\(port)", "/etc/haproxy/": gate.folder + "/", "abns@attest": socket,
      "gate.example.com:6200": "127.0.0.1:\(gate.port)", "gate.example.com": "localhost",
      "/etc/ssl/certs/ca-certificates.crt": gate.certificateAuthority, "127.0.0.1:8080": "127.0.0.1:\(backend)",
    ])
    let script = try guide.block("lua").replacing(["gate.example.com": "localhost", "abns@attest": socket])
    let certificate = try ["server.pem", "server.key"]
      .map { try String(contentsOfFile: gate.folder + "/" + $0, encoding: .utf8) }.joined()
    for (name, text) in [("haproxy.cfg", configuration), ("attest.lua", script), ("attest.pem", certificate)] {
      try text.write(toFile: gate.folder + "/" + name, atomically: true, encoding: .utf8)
    }
    return try ChildProcess("/usr/sbin/haproxy", ["-db", "-f", gate.folder + "/haproxy.cfg"])
  }
}

extension RunningGate {
  /// Returns once a TLS handshake succeeds.
  fileprivate func waitUntilItListens() async throws {
    let end = ContinuousClock.now + .seconds(20)
    while true {
      do {
        _ = try await Visitor(self).connection()
        return
      } catch {
        // These programs do not report that they listen, so the test tries to connect until it can.
        guard ContinuousClock.now < end, !process.hasEnded else { throw error }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
}

@Suite("Forward auth by other vendors' proxies", .serialized, .timeLimit(.minutes(10)))
struct ForwardAuthTests {
  /// Runs a recording backend behind a proxy that asks a gate, and calls `body` with a client of the proxy.
  private func serving(
    _ kind: OuterProxy, _ configuration: GateConfiguration = GateConfiguration(),
    _ body: (_ client: Visitor, Witness, RunningGate) async throws -> Void
  ) async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await RunningGate.serving(configuration) { gate in
      let proxy = try await kind.start(gate, backend: witness.port)
      defer { proxy.process.kill() }
      try await body(Visitor(proxy), witness, gate)
    }
  }

  /// Every variant of the gate's identity headers that a client may send: each name in three cases, and with each
  /// separator that a server could read as a hyphen, in place of one hyphen or of all.
  private static let spoofs = HeaderFields(
    ["X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X-Attest-Error"].flatMap(variants)
      .map { HeaderFields.Field(name: $0, value: "spoofed") })

  private static func variants(of name: String) -> [String] {
    let separated = ["_", ".", "!"].flatMap { separator in
      [
        name.replacing("-", with: separator), name.replacing("-", with: separator, maxReplacements: 1),
        "X-" + name.dropFirst(2).replacing("-", with: separator),
      ]
    }
    return [name, name.lowercased(), name.uppercased()] + separated
  }

  @Test("A device registers through the proxy, opens a socket and exchanges messages", arguments: OuterProxy.allCases)
  func device(_ kind: OuterProxy) async throws {
    let backend = try await EchoBackend()
    defer { backend.process.kill() }
    try await RunningGate.serving { gate in
      let port = try #require(backend.upstream.split(separator: ":").last.flatMap { Int($0) })
      let proxy = try await kind.start(gate, backend: port)
      defer { proxy.process.kill() }
      let (exit, output, errors) = try await ChildProcess.run(
        Places.product("attest"),
        ["connect", "wss://localhost:\(proxy.port)/", "--authority", gate.folder, "--once", "hello"],
        environment: [String: String?].gateless.merging(["XDG_DATA_HOME": gate.folder]) { $1 }, within: .seconds(30))
      #expect(exit == .code(0), "\(errors)")
      #expect(output == ["hello"])
      let headers = try await backend.firstHeaders()
      #expect(headers["x-attest-key-id"]?.count == 43)
      #expect(headers["x-attest-app"] == GateConfiguration.appID && headers["x-attest-method"] == "app-attest")
      let assertion = try #require(headers["x-attest-assertion"])
      #expect(try await DocumentedVerifier(gate: gate).verify([assertion]).first?["app"] as? String != nil)
      for name in ["keyid", "data", "nonce"] { #expect(headers["x-app-assert-\(name)"] == nil) }
    }
  }

  @Test(
    "A client without an assertion, with a used one, or with a revoked key does not reach the backend",
    arguments: OuterProxy.allCases)
  func refused(_ kind: OuterProxy) async throws {
    try await serving(kind) { client, witness, gate in
      let none = try await client.refusal(of: Self.spoofs)
      #expect(none.status == 401 && none.headers.first("X-Attest-Error") == "no_credentials")
      #expect(try witness.connectionCount == 0)
      let device = try await client.registeredDevice()
      let proof = try device.headers(over: await client.challenge())
      _ = try await client.open(proof)
      #expect(try await client.refusal(of: proof).headers.first("X-Attest-Error") == "nonce_used")
      try StateFile(of: gate).revoke(device)
      let revoked = try await client.refusal(of: device.headers(over: await client.challenge(), count: 2))
      #expect(revoked.status == 403 && revoked.headers.first("X-Attest-Error") == "key_revoked")
      #expect(try witness.connectionCount == 1)
    }
  }

  @Test(
    "Identity headers of a client never reach the backend, with or without the gate's own, in any variant",
    arguments: OuterProxy.allCases, ["enforce", "off"])
  func spoofing(_ kind: OuterProxy, enforcement: String) async throws {
    try await serving(kind, GateConfiguration(enforcement: enforcement)) { client, witness, _ in
      let device = try await client.registeredDevice()
      _ = try await client.open(device.headers(over: await client.challenge()).appending(Self.spoofs))
      let head = try await witness.head(1)
      #expect(!head.contains { $0.contains("spoofed") }, "\(head)")
      let expected = enforcement == "off" ? "none" : "app-attest"
      // HAProxy writes header names in lowercase.
      #expect(head.map { $0.lowercased() }.filter { $0.contains("attest-method") } == ["x-attest-method: \(expected)"])
    }
  }

  @Test("Without the gate no client reaches the backend", arguments: OuterProxy.allCases)
  func gateGone(_ kind: OuterProxy) async throws {
    try await serving(kind) { client, witness, gate in
      gate.process.kill()
      _ = try await gate.process.exit()
      #expect(try await client.refusal(of: Self.spoofs).status >= 500)
      #expect(try witness.connectionCount == 0)
    }
  }
}
