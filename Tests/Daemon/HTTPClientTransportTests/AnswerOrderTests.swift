import Wire
import Foundation
import HTTPClientTransport
import TestSupport
import Testing

/// A server whose answers are no HTTP must not end this process, nor keep later requests from another connection.
@Suite("Answers that are none", .timeLimit(.minutes(2)))
struct AnswerOrderTests {
  /// A server that answers with the status in the target.
  private struct Server {
    let port: UInt16
    let process: ChildProcess
    let authorityFile: String

    init(in folder: String) async throws {
      authorityFile = folder + "/server.pem"
      try await HTTPSServer.makeCertificate("DNS:localhost", at: authorityFile, key: folder + "/server.key")
      process = try ChildProcess(
        Places.tool("python3"),
        [ProjectFile.path("Tests/Daemon/Programs/answers.py"), authorityFile, folder + "/server.key"])
      port = UInt16(try await process.output.first("the port") { UInt16($0) != nil }) ?? 0
    }

    func request(_ target: String) throws -> HTTPRequest {
      HTTPRequest(url: try #require(URL(string: "https://localhost:\(port)/\(target)")))
    }

    func transport(http2: Bool, within time: Duration = .seconds(60)) -> HTTPClientTransport {
      HTTPClientTransport(
        .init(authorityFile: authorityFile, exchangeTime: time, proxies: .none, offersHTTP2: http2))
    }

    var connections: Int { process.output.lines.count { $0 == "connection" } }
  }

  @Test(
    "A status that is none is the error of its request alone",
    arguments: [true, false], ["0", "000", "099", "-200", "99999999999999999999"])
  func noStatus(http2: Bool, status: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await Server(in: folder)
      defer { server.process.kill() }
      let transport = server.transport(http2: http2)
      await #expect(throws: TransportError.self) { _ = try await transport.send(server.request(status)) }
      #expect(try await transport.send(server.request("200")).body == Array("hi".utf8))
    }
  }

  @Test("An informational answer without another one is an error", arguments: [true, false])
  func informationalAlone(http2: Bool) async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await Server(in: folder)
      defer { server.process.kill() }
      let transport = server.transport(http2: http2)
      await #expect(throws: TransportError.self) { _ = try await transport.send(server.request("150")) }
      #expect(try await transport.send(server.request("204")).status == 204)
    }
  }

  @Test("After a request without an answer, the next one has another connection, with HTTP/2 too")
  func silence() async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await Server(in: folder)
      defer { server.process.kill() }
      let transport = server.transport(http2: true, within: .seconds(5))
      _ = try await transport.send(server.request("200"))
      _ = try await transport.send(server.request("200"))
      #expect(server.connections == 1)
      await #expect(throws: TransportError.lost("no complete answer within the time allowed")) {
        _ = try await transport.send(server.request("mute"))
      }
      #expect(try await transport.send(server.request("200")).status == 200)
      #expect(server.connections == 2)
    }
  }
}
