import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate with an inherited socket", .serialized, .timeLimit(.minutes(5)))
struct SocketActivationTests {
  @Test(
    "A port or address of the configuration that is not that of the passed socket is refused by name",
    arguments: [
      ("port: 1", "listen.port is 1, but systemd passes a socket at 127.0.0.1:"),
      ("address: \"::1\"", "listen.address is ::1, but systemd passes a socket at 127.0.0.1:"),
    ])
  func wrongSocket(setting: String, reason: String) async throws {
    try await GateProcess.serving(GatePlan()) { first in
      try await first.crash()
      let file = first.folder.path + "/gate.yaml"
      try String(contentsOfFile: file, encoding: .utf8)
        .replacing(/listen: .*/, with: "listen: { \(setting) }").write(toFile: file, atomically: true, encoding: .utf8)
      let unit = try await SocketUnit(
        at: "127.0.0.1", command: [Places.product("sallyport"), "run", "-c", file])
      defer { unit.process.kill() }
      unit.start()
      #expect(try await unit.ended(1) == 78)
      unit.process.closeInput()
      _ = try await unit.process.exit(within: .seconds(30))
      let errors = try await unit.process.errors.all()
      #expect(errors.contains { $0.hasPrefix("error: \(reason)") }, "\(errors)")
      #expect(errors.contains { $0.hasPrefix("hint: ") && $0.contains("ListenStream=") }, "\(errors)")
    }
  }

  @Test("A gate whose socket unit has passed no socket does not start at another address, and names the unit")
  func missingSocket() async throws {
    try await GateProcess.serving(GatePlan()) { first in
      try await first.crash()
      let command = ["run", "-c", first.folder.path + "/gate.yaml"]
      let refused = try await sallyport(command, environment: ["SOCKET_UNIT": "sallyport.socket"])
      #expect(refused.status == 78 && refused.isFailure)
      #expect(refused.errors.contains("error: sallyport.socket has passed no socket"), "\(refused.errors)")
      let process = try ChildProcess(
        Places.product("sallyport"), command, environment: ["SOCKET_UNIT": ""], in: first.folder.path)
      defer { process.kill() }
      _ = try await process.errors.first("the port") { $0.contains(#""message":"listening""#) }
    }
  }

  /// Passes the report channel of an upgrade whose old process has exited.
  private static let orphan = """
    import os, sys
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 3)
    os.set_inheritable(3, True)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="sallyport-predecessor")
    os.execv(sys.argv[1], sys.argv[1:])
    """

  @Test("A new process whose old process has exited reports its fault and is not killed by SIGPIPE")
  func brokenReport() async throws {
    let (exit, _, errors) = try await ChildProcess.run(
      Places.tool("python3"), ["-c", Self.orphan, Places.product("sallyport"), "run", "--set", "listen.port=x"])
    #expect(exit == .code(78), "\(errors)")
  }

  @Test("A restart refuses no connection: clients wait for the next process")
  func restart() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.isEnforcing = false
      try await GateProcess.serving(plan) { first in
        // The other processes use its folder and configuration.
        try await first.crash()
        let unit = try await SocketUnit(
          at: "127.0.0.1", command: [Places.product("sallyport"), "run", "-c", first.folder.path + "/gate.yaml"])
        defer { unit.process.kill() }
        let port = unit.port
        let engine = try ClientEngine()
        let tls = try ClientTLS(authorityFile: first.folder.tlsAuthorityPath)
        func open() async throws -> ClientWebSocket {
          try await engine.connect(
            host: "127.0.0.1", port: port, tls: tls, verifying: "localhost", timeout: .seconds(60)
          ).upgrade("/", host: "localhost:\(port)", headers: HeaderFields())
        }
        unit.start()
        let socket = try await open()
        #expect(try await socket.exchange(.text("one")) == .text("one"))
        kill(try await unit.started(1), SIGTERM)
        #expect(try await socket.ending(since: .now).code == 1001)
        #expect(try await unit.ended(1) == 0)
        async let early = open()
        unit.start()
        #expect(try await early.exchange(.text("two")) == .text("two"))
        kill(try await unit.started(2), SIGTERM)
        unit.process.closeInput()
        #expect(try await unit.process.exit(within: .seconds(30)) == .code(0))
      }
    }
  }
}
