import AttestGate
import ConfigurationEngine
import Foundation
import GateRuntime
import SQLiteStore
import Settings
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The environment of a gate", .serialized, .timeLimit(.minutes(2)))
struct WorldTests {
  // MARK: Listener

  @Test("An address in use causes a warning, and one of another machine fails")
  func listener() async throws {
    try await Bench.with { bench in
      let socket = try ListeningSocket()
      let upstream = "routes: [{ upstream: 'tcp://127.0.0.1:\(socket.port)' }]"
      #expect(
        try await bench.findings(bench.settings(upstream, set: ["listen.port": "\(socket.port)"])) == [
          "warning: listen.port: 127.0.0.1:\(socket.port) is in use by another process"
        ])
      let elsewhere = try await bench.findings(bench.settings(upstream, set: ["listen.address": "192.0.2.1"]))
      #expect(
        elsewhere.count == 1 && elsewhere.first?.hasPrefix("failed: listen.address: cannot listen at 192.0.2.1") == true
      )
    }
  }

  @Test("An unusable address of the admin server or of metrics is reported in the same way")
  func sideListeners() async throws {
    try await Bench.with { bench in
      let socket = try ListeningSocket()
      func findings(_ sections: String) async throws -> [String] {
        try await bench.findings(
          bench.settings(sections + "\nroutes: [{ upstream: 'tcp://127.0.0.1:\(socket.port)' }]"))
      }
      let path = bench.folder + "/admin.sock"
      #expect(try await findings("admin: { listen: 'unix:\(path)' }\nmetrics: { listen: '127.0.0.1:0' }") == [])
      #expect(!FileManager.default.fileExists(atPath: path))
      #expect(
        try await findings("admin: { listen: 'unix:\(bench.folder)/none/admin.sock' }") == [
          "failed: admin.listen: cannot create a socket in DIR/none: No such file or directory"
        ])
      #expect(
        try await findings("admin: { listen: 'unix:\(bench.folder)/server.pem' }") == [
          "failed: admin.listen: DIR/server.pem exists and is not a socket"
        ])
      let live = try ListeningPath(path)
      #expect(
        try await findings("admin: { listen: 'unix:\(path)' }\nmetrics: { listen: '127.0.0.1:\(socket.port)' }") == [
          "warning: admin.listen: unix:DIR/admin.sock is in use by another process",
          "warning: metrics.listen: 127.0.0.1:\(socket.port) is in use by another process",
        ])
      let elsewhere = try await findings("metrics: { listen: '192.0.2.1:9464' }")
      #expect(elsewhere.count == 1 && elsewhere[0].hasPrefix("failed: metrics.listen: cannot listen at 192.0.2.1"))
      withExtendedLifetime(live) {}
    }
  }

  // MARK: Upstreams

  @Test("Upstreams that accept connections are reachable, over TCP and Unix sockets; silence is no WebSocket server")
  func upstreams() async throws {
    try await Bench.with { bench in
      let socket = try ListeningSocket()
      let path = try ListeningPath(bench.folder + "/up.sock")
      let settings = try bench.settings(
        """
        routes:
          - { path: /, upstream: "ws://127.0.0.1:\(socket.port)" }
          - { path: /t, upstream: "tcp://localhost:\(socket.port)" }
          - { path: /u, upstream: "unix:\(bench.folder)/up.sock" }
          - { path: /a, upstream: "ws://127.0.0.1:\(socket.port)", forward: all }
        """)
      let findings = try await bench.findings(settings)
      #expect(findings.count == 2, "\(findings)")
      for (key, line) in zip(["routes[0].upstream", "routes[2].upstream"], findings) {
        #expect(
          line.hasPrefix("warning: \(key): ") && line.contains("does not answer a WebSocket handshake"), "\(line)")
      }
      #expect(try await bench.results(settings).count { $0.key.hasPrefix("routes[") } == 4)
      withExtendedLifetime((socket, path)) {}
    }
  }

  @Test("Unreachable upstreams fail, each at its key")
  func absentUpstreams() async throws {
    try await Bench.with { bench in
      let settings = try bench.settings(
        """
        routes:
          - { path: /, upstream: "ws://127.0.0.1:1" }
          - { path: /u, upstream: "unix:\(bench.folder)/none.sock" }
          - { path: /s, upstream: "wss://127.0.0.1:1" }
        """)
      let reported = try await bench.findings(settings)
      #expect(reported.count == 3)
      for (index, line) in reported.enumerated() {
        #expect(line.hasPrefix("failed: routes[\(index)].upstream: ") && line.contains("cannot be reached"), "\(line)")
      }
    }
  }

  @Test("An upstream with TLS must have a trusted certificate for its name")
  func secureUpstream() async throws {
    try await Bench.with { bench in
      let folder = AuthorityFolder(path: bench.folder)
      let server = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1,
        tls: ServerTLS(.init(certificateFile: folder.serverCertificatePath, keyFile: folder.serverKeyPath)),
        responder: Silent())
      defer { server.stop() }
      let url = "wss://localhost:\(server.address.port)"
      let trusted = "routes: [{ upstream: '\(url)', upstream_tls: { ca_file: tls-ca.pem } }]"
      let reached = try await bench.findings(bench.settings(trusted))
      #expect(reached.count == 1 && reached.first?.contains("WebSocket handshake") == true, "\(reached)")
      let untrusted = "routes: [{ upstream: '\(url)', upstream_tls: { ca_file: receipt-root.pem } }]"
      #expect(try await bench.findings(bench.settings(untrusted)).count == 1)
      let misnamed = "routes: [{ upstream: '\(url)', upstream_tls: { ca_file: tls-ca.pem, server_name: other } }]"
      #expect(try await bench.findings(bench.settings(misnamed)).first?.contains("other") == true)
    }
  }

  private struct Silent: RequestResponder {
    func respond(to request: Request, from peer: Peer) async -> Disposition { .respond(Response(status: 404)) }
    func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
      Response(status: 400)
    }
  }

  // MARK: Store

  /// Returns the result for the store, and whether the files in its folder stayed the same.
  private func look(_ bench: Bench) async throws -> (line: String?, isUntouched: Bool) {
    let before = try FileManager.default.contentsOfDirectory(atPath: bench.folder)
    let result = try await bench.results(bench.settings("routes: []")).first { $0.key == "store.url" }
    // `settings` writes the configuration itself.
    let after = try FileManager.default.contentsOfDirectory(atPath: bench.folder)
    let others = { (names: [String]) in names.filter { $0 != "gate.yaml" }.sorted() }
    return (result.map(bench.line), others(before) == others(after))
  }

  @Test("A store is checked without being created or changed: before the first start, while it is open, and after")
  func store() async throws {
    try await Bench.with { bench in
      var seen = try await look(bench)
      #expect(seen == ("passed: store.url: sqlite://DIR/state.db is empty: the first start creates its tables", true))

      let store = SQLiteStore(path: bench.folder + "/state.db")
      try await store.open()
      let current = "passed: store.url: sqlite://DIR/state.db can be opened"
      seen = try await look(bench)
      #expect(seen == (current, true))
      await store.close()
      seen = try await look(bench)
      #expect(seen == (current, true))
    }
  }

  @Test("A file that is not a database, or has no folder, fails")
  func brokenStore() async throws {
    try await Bench.with { bench in
      try bench.write(String(repeating: "not a database ", count: 100), to: "state.db")
      let seen = try await look(bench)
      #expect(seen.line?.hasPrefix("failed: store.url: sqlite://DIR/state.db cannot be used: it is damaged: ") == true)
      #expect(seen.isUntouched)
      let settings = try bench.settings("routes: []", set: ["store.url": "sqlite://\(bench.folder)/none/state.db"])
      let reported = try await bench.findings(settings)
      #expect(reported.count == 1 && reported.first?.contains("No such file or directory") == true)
    }
  }
}
