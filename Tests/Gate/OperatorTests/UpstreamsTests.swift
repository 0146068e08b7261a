import Foundation
import GateProcesses
import GateService
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A route with several servers", .serialized, .timeLimit(.minutes(5)))
struct UpstreamsTests {
  /// Calls `body` with a gate in front of three echo servers.
  private func serving(
    balance: String = "sessions", isEnforcing: Bool = false, _ body: (AdminBench, [EchoProcess]) async throws -> Void
  ) async throws {
    var servers: [EchoProcess] = []
    for _ in 0..<3 { servers.append(try await EchoProcess()) }
    defer { for server in servers { server.process.kill() } }
    var plan = GatePlan()
    plan.routes = [("/", servers.map(\.upstream).joined(separator: ", "))]
    plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
    plan.isEnforcing = isEnforcing
    try await GateProcess.serving(plan) { gate in
      let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
      try rewrite(bench) { $0.replacing("forward: upgrades", with: "forward: upgrades, balance: \(balance)") }
      #expect(try await sallyport(["reload"] + bench.config).status == 0)
      try await body(bench, servers)
    }
  }

  private func rewrite(_ bench: AdminBench, _ change: (String) -> String) throws {
    try change(String(contentsOfFile: bench.config[1], encoding: .utf8))
      .write(toFile: bench.config[1], atomically: true, encoding: .utf8)
  }

  private func list(_ bench: AdminBench) async throws -> [UpstreamServerState] {
    let answer = try await sallyport(["upstreams", "list", "--json"] + bench.config)
    try #require(answer.status == 0, "\(answer.errors)")
    return try answer.output.map { try JSONDecoder().decode(UpstreamServerState.self, from: Data($0.utf8)) }
  }

  @Test("Sessions spread evenly; those of a server that dies go to the others, and no client sees it")
  func failover() async throws {
    try await serving { bench, servers in
      var sockets: [ClientWebSocket] = []
      for _ in 0..<12 { sockets.append(try await bench.visitor.open()) }
      #expect(try await list(bench).map(\.sessions) == [4, 4, 4])
      servers[1].process.kill()
      _ = try await servers[1].process.exit()
      // The sockets of the dead server end; that of a living one stays.
      for number in [1, 4, 7, 10] { #expect(try await sockets[number].ending(since: .now).code == 1014) }
      #expect(try await sockets[0].exchange(.text("here")) == .text("here"))
      for _ in 0..<6 {
        let socket = try await bench.visitor.open()
        #expect(try await socket.exchange(.text("new")) == .text("new"))
        sockets.append(socket)
      }
      let states = try await list(bench)
      #expect(states.map(\.sessions) == [7, 0, 7] && states[1].condition == .resting && states[1].failures > 0)
      _ = try await bench.gate.process.errors.first("the failed attempt") {
        $0.contains(#""message":"upstream not reached, another one is tried""#)
          && $0.contains(#""upstream":"\#(servers[1].upstream)""#)
      }
      let metrics = try await bench.ask("GET", "/metrics").text
      #expect(metrics.contains(#"sallyport_upstream_sessions{route="/",upstream="\#(servers[0].upstream)"} 7"#))
      #expect(metrics.contains(#"sallyport_upstream_available{route="/",upstream="\#(servers[1].upstream)"} 0"#))
      let status = try await sallyport(["status"] + bench.config).output.joined(separator: "\n")
      #expect(status.contains("\(servers[1].upstream): resting, 0 open"), "\(status)")
      withExtendedLifetime(sockets) {}
    }
  }

  @Test("A server whose health check fails gets no session until it passes one; a reload without checks forgets them")
  func health() async throws {
    try await Places.withTemporaryFolder { folder in
      var servers: [(process: ChildProcess, upstream: String, page: String)] = []
      defer { for server in servers { server.process.kill() } }
      for name in ["a", "b"] {
        let (place, port) = ("\(folder)/\(name)", try Places.freePort())
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        try "ok".write(toFile: place + "/healthz", atomically: true, encoding: .utf8)
        let process = try ChildProcess(
          "/usr/bin/python3", ["-u", "-m", "http.server", "--bind", "127.0.0.1", "-d", place, "\(port)"])
        _ = try await process.output.first("the server") { $0.hasPrefix("Serving") }
        servers.append((process, "ws://127.0.0.1:\(port)", place + "/healthz"))
      }
      var plan = GatePlan()
      plan.routes = [("/", servers.map(\.upstream).joined(separator: ", "))]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      try await GateProcess.serving(plan) { gate in
        let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
        let check = ", health: { path: /healthz, interval: 1s }"
        try rewrite(bench) { $0.replacing("forward: upgrades", with: "forward: upgrades" + check) }
        #expect(try await sallyport(["reload"] + bench.config).status == 0)
        let (first, second) = (servers[0].upstream, servers[1].upstream)
        try FileManager.default.removeItem(atPath: servers[0].page)
        _ = try await gate.process.errors.first("the failed check") {
          $0.contains("upstream fails its health check") && $0.contains(first)
            && $0.contains("status 404")
        }
        #expect(try await list(bench).map(\.condition) == [.unhealthy, .available])
        try "ok".write(toFile: servers[0].page, atomically: true, encoding: .utf8)
        _ = try await gate.process.errors.first("the check that passes") {
          $0.contains("upstream passes its health check again") && $0.contains(first)
        }
        servers[1].process.kill()
        _ = try await gate.process.errors.first("the second failure") {
          $0.contains("upstream fails its health check") && $0.contains(second)
        }
        try rewrite(bench) { $0.replacing(check, with: "") }
        #expect(try await sallyport(["reload"] + bench.config).status == 0)
        #expect(try await list(bench).map(\.condition) == [.available, .available])
      }
    }
  }

  @Test("A drained server gets no new session and keeps its open ones, also after a reload; the last is not drained")
  func drain() async throws {
    try await serving { bench, servers in
      let socket = try await bench.visitor.open()
      let drained = try await sallyport(["upstreams", "drain", servers[0].upstream] + bench.config)
      #expect(drained.output == ["\(servers[0].upstream) of / gets no new sessions; 1 is open"], "\(drained)")
      #expect(try await sallyport(["reload"] + bench.config).status == 0)
      var sockets: [ClientWebSocket] = []
      for _ in 0..<4 { sockets.append(try await bench.visitor.open()) }
      #expect(try await list(bench).map(\.sessions) == [1, 2, 2])
      #expect(try await list(bench)[0].condition == .drained)
      #expect(try await socket.exchange(.text("old")) == .text("old"))

      #expect(try await sallyport(["upstreams", "drain", servers[1].upstream] + bench.config).status == 0)
      let last = try await sallyport(["upstreams", "drain", servers[2].upstream] + bench.config)
      #expect(last.isFailure && last.errors[0].contains("no other server that is not drained"), "\(last)")
      let unknown = try await sallyport(["upstreams", "drain", "ws://127.0.0.1:1"] + bench.config)
      #expect(unknown.status == 66 && unknown.isFailure, "\(unknown)")
      try rewrite(bench) {
        $0.replacing("routes: [", with: "routes: [{ path: /twin, upstream: \"\(servers[1].upstream)\" }, ")
      }
      #expect(try await sallyport(["reload"] + bench.config).status == 0)
      let ambiguous = try await sallyport(["upstreams", "resume", servers[1].upstream] + bench.config)
      #expect(
        ambiguous.isFailure
          && ambiguous.errors == [
            "error: Several routes have this server: /, /twin", "hint: name one of them: --route PATH",
          ], "\(ambiguous)")
      let one = try await sallyport(["upstreams", "resume", "--route", "/", servers[1].upstream] + bench.config)
      #expect(one.status == 0, "\(one)")
      // The only server of a route gets sessions already.
      let single = try await sallyport(["upstreams", "resume", "--route", "/twin", servers[1].upstream] + bench.config)
      #expect(single.status == 0, "\(single)")
      let resumed = try await sallyport(["upstreams", "resume", servers[0].upstream, "--json"] + bench.config)
      #expect(try resumed.json(UpstreamServerState.self).condition == .available, "\(resumed)")
      withExtendedLifetime(sockets) {}
    }
  }

  @Test("With balance: device, each session of a device reaches the same server")
  func byDevice() async throws {
    try await serving(balance: "device", isEnforcing: true) { bench, _ in
      var sockets: [ClientWebSocket] = []
      for _ in 0..<3 {
        let (phone, _) = try await bench.registeredPhone()
        let before = try await list(bench).map { $0.sessions ?? 0 }
        for counter in 1...4 {
          let proof = try phone.credentials(over: await bench.visitor.challenge(), counter: UInt32(counter))
          sockets.append(try await bench.visitor.open("/", proof))
        }
        let now = try await list(bench).map { $0.sessions ?? 0 }
        #expect(zip(now, before).map { $0 - $1 }.sorted() == [0, 0, 4], "\(before) \(now)")
      }
      withExtendedLifetime(sockets) {}
    }
  }

  @Test("Each server of a route is checked")
  func check() async throws {
    try await serving { bench, servers in
      servers[2].process.kill()
      _ = try await servers[2].process.exit()
      let answer = try await sallyport(["check"] + bench.config)
      let text = (answer.output + answer.errors).joined(separator: "\n")
      #expect(answer.status == 1 && text.contains("\(servers[2].upstream) cannot be reached"), "\(text)")
      #expect(text.contains("\(servers[0].upstream) accepts connections"), "\(text)")
    }
  }
}
