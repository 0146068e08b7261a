import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate with an inherited socket", .serialized, .timeLimit(.minutes(5)))
struct SocketActivationTests {
  /// Does what systemd does with a socket unit: keeps a listening socket, and starts the program for each line of
  /// input.
  private static let manager = """
    import os, socket, subprocess, sys
    listener = socket.create_server(("127.0.0.1", 0))
    print("port", listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
            os.execv(sys.argv[1], sys.argv[1:])
        print("started", child, flush=True)
        print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """

  @Test("A restart refuses no connection: clients wait for the next process")
  func restart() async throws {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.isEnforcing = false
      try await GateProcess.serving(plan) { first in
        // The other processes use its folder and configuration.
        try await first.crash()
        let manager = try ChildProcess(
          "/usr/bin/python3",
          ["-c", Self.manager, Places.product("sallyport"), "run", "-c", first.folder.path + "/gate.yaml"])
        defer { manager.kill() }
        let port = try #require(
          UInt16(try await manager.output.first("the port") { $0.hasPrefix("port ") }.dropFirst(5)))
        let engine = try ClientEngine()
        let tls = try ClientTLS(authorityFile: first.folder.tlsAuthorityPath)
        func open() async throws -> ClientWebSocket {
          try await engine.connect(
            host: "127.0.0.1", port: port, tls: tls, verifying: "localhost", timeout: .seconds(60)
          ).upgrade("/", host: "localhost:\(port)", headers: HeaderFields())
        }
        manager.write("go\n")
        let socket = try await open()
        #expect(try await socket.exchange(.text("one")) == .text("one"))
        let child = try #require(
          pid_t(try await manager.output.first("the process") { $0.hasPrefix("started ") }.dropFirst(8)))
        // Sent to the process in the line, which has not been waited for.
        kill(child, SIGTERM)
        #expect(try await socket.ending(since: .now).code == 1001)
        #expect(try await manager.output.first("its end") { $0.hasPrefix("ended ") } == "ended 0")
        async let early = open()
        manager.write("go\n")
        #expect(try await early.exchange(.text("two")) == .text("two"))
        let second = try await manager.output.first(4).last?.dropFirst(8)
        kill(try #require(second.flatMap { pid_t($0) }), SIGTERM)
        manager.closeInput()
        #expect(try await manager.exit(within: .seconds(30)) == .code(0))
      }
    }
  }
}
