import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("Client", .timeLimit(.minutes(10)))
  struct ClientTests {
    @Test("a request that is refused because another is under way is not sent")
    func busy() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let first = Task { try await connection.send("GET", "/1", headers: TestGate.host) }
      #expect(try server.readHead().hasPrefix("GET /1 "))
      await #expect(throws: ClientFault.self) { try await connection.send("GET", "/2", headers: TestGate.host) }
      try server.send("HTTP/1.1 204 No Content\r\n\r\n")
      #expect(try await first.value.status == 204)
      let third = Task { try await connection.send("GET", "/3", headers: TestGate.host) }
      #expect(try server.readHead().hasPrefix("GET /3 "))
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      #expect(try await third.value.status == 200)
    }

    @Test("an answer to HEAD has no body, whatever its length says")
    func head() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      let answer = Task {
        try await connection.send("HEAD", "/", headers: TestGate.host, timeout: .seconds(2)).status
      }
      _ = try server.readHead()
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      #expect(try await answer.value == 200)
    }

    @Test("an answer that nobody asked for ends the connection, and is nobody's answer")
    func unasked() async throws {
      let listener = try RawListener()
      let engine = try ClientEngine()
      let connection = try await engine.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      let server = try listener.accept()
      try server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
      #expect(try server.readToEnd() == [])
      await #expect(throws: ClientFault.self) { try await connection.send("GET", "/", headers: TestGate.host) }
    }
  }
}
