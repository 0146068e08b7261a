import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A gate with an inherited socket", .serialized, .timeLimit(.minutes(5)))
struct SocketActivationTests {
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
