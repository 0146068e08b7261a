import Foundation
import TestSupport
import Testing

/// Another vendor's proxy, configured as the documentation describes, which asks a gate about each request.
enum OuterProxy: String, CaseIterable, CustomTestStringConvertible {
  case nginx
  case caddy
  case haproxy

  var testDescription: String { rawValue }

  /// Starts the proxy in front of `gate` and of `backend`, a port. The proxy uses the gate's certificate.
  func start(_ gate: RunningGate, backend: Int) async throws -> RunningGate {
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
      "listen 443 ssl http2;": "listen 127.0.0.1:\(port) ssl http2;", "app.example.com": "localhost",
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
    let asking = try Places.freePort()
    let site = try Guide.service("ForwardAuth").block("caddy").replacing([
      "app.example.com {": "https://localhost:\(port) {\n\ttls \(gate.folder)/server.pem \(gate.folder)/server.key",
      "gate.example.com:6200": "localhost:\(gate.port)", "127.0.0.1:8080": "127.0.0.1:\(backend)",
      "127.0.0.1:6210": "127.0.0.1:\(asking)", "http://:6210": "http://:\(asking)",
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
      // A test that does not run as root cannot change its user.
      "    user haproxy\n    group haproxy\n": "",
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
