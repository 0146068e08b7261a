import Wire
import SimulatedDevice
import TestSupport
import Testing
import Transport

@testable import TransportEngine

extension EngineTests {
  @Suite("The gate's own clients behind a proxy", .timeLimit(.minutes(2)))
  struct ForwardProxyTests {
    private struct Echo: RequestResponder {
      func respond(to request: Request, from peer: Peer) async -> Disposition {
        .respond(Response(status: 200, body: Array(request.target.utf8)))
      }

      func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
        Response(status: 400, closes: true)
      }
    }

    private func proxy(_ url: String) throws -> ForwardProxy {
      let variables = ProxyVariables { $0 == "ALL_PROXY" ? url : nil }
      return try #require(try variables.proxy(for: .https, host: "acme.example.test", port: 443))
    }

    @Test("A tunnel leads to the server, whose certificate must be for its own name")
    func tunnel() async throws {
      let files = try TLSFolder()
      let server = ServerTLS.CertificateFiles(
        certificateFile: files.folder.serverCertificatePath, keyFile: files.folder.serverKeyPath)
      let engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: try ServerTLS(server), responder: Echo())
      defer { engine.stop() }
      let relay = try ForwardProxyServer(.serve(port: engine.address.port, document: ""))
      defer { relay.stop() }
      let client = try ClientEngine()
      let tls = try ClientTLS(authorityFile: files.folder.tlsAuthorityPath)
      let proxy = try proxy("http://us%65r:secret@127.0.0.1:\(relay.port)")
      let connection = try await client.connect(
        host: "acme.example.test", port: 8443, tls: tls, verifying: "localhost", through: proxy)
      for target in ["/1", "/2"] {
        #expect(try await connection.send("GET", target, headers: TestGate.host).body == Array(target.utf8))
      }
      #expect(
        relay.heads == [
          "CONNECT acme.example.test:8443 HTTP/1.1\r\nHost: acme.example.test:8443\r\n"
            + "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ="
        ])
      let error = await #expect(throws: ClientError.self) {
        try await client.connect(host: "acme.example.test", port: 8443, tls: tls, through: proxy)
      }
      guard case .untrusted = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }

    @Test("A request without TLS has the whole URL as its target, and only for a proxy")
    func absoluteForm() async throws {
      let relay = try ForwardProxyServer(.serve(port: 1, document: "{}"))
      defer { relay.stop() }
      let client = try ClientEngine()
      let connection = try await client.connect(toProxy: try proxy(relay.url))
      await #expect(throws: ClientError.self) { try await connection.send("GET", "/", headers: TestGate.host) }
      let answer = try await connection.send("POST", "http://x/v1", headers: TestGate.host, body: [1])
      #expect(answer.status == 200 && relay.heads[0].hasPrefix("POST http://x/v1 HTTP/1.1\r\nHost: x"))
      let listener = try RawListener()
      let direct = try await client.connect(host: "127.0.0.1", port: listener.port, tls: nil)
      await #expect(throws: ClientError.self) { try await direct.send("GET", "http://x/", headers: TestGate.host) }
    }

    @Test(
      "A proxy that opens no tunnel is named, and its answer is bounded",
      arguments: [
        ("HTTP/1.1 403 x\r\n\r\n", "status 403"), ("HTTP/1.1 407 x\r\n\r\n", "it refuses the user and the password"),
        ("", "closed the connection"), ("220 mail\r\n", "did not answer CONNECT"),
        ("HTTP/1.1 200 OK\r\n\r\n\u{16}", "before the client did"),
        ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 1 << 15), "more than 16384 bytes"),
      ])
    func refusals(_ answer: String, _ words: String) async throws {
      let relay = try ForwardProxyServer(.answer(Array(answer.utf8)))
      defer { relay.stop() }
      let proxy = try proxy("http://user:hunter2@127.0.0.1:\(relay.port)")
      let tls = try ClientTLS(authorityFile: nil)
      let error = await #expect(throws: ClientError.self) {
        try await ClientEngine().connect(host: "acme.example.test", port: 443, tls: tls, through: proxy)
      }
      guard case .unreachable(let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.contains(words) && reason.contains("127.0.0.1:\(relay.port) (ALL_PROXY)"), "\(reason)")
      #expect(!reason.contains("hunter2"))
    }

    @Test(
      "One deadline bounds connection, tunnel and handshake", arguments: [Array("HTTP/1.1 200 OK\r\nA: ".utf8), nil])
    func deadline(_ bytes: [UInt8]?) async throws {
      let relay = try ForwardProxyServer(bytes.map { .drip($0) } ?? .silence)
      defer { relay.stop() }
      let proxy = try proxy(relay.url)
      let tls = try ClientTLS(authorityFile: nil)
      let error = await #expect(throws: ClientError.self) {
        try await ClientEngine().connect(
          host: "acme.example.test", port: 443, tls: tls, through: proxy, timeout: .milliseconds(300))
      }
      guard case .unreachable(let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.contains("no answer within the time allowed"))
    }

    @Test("A tunnel whose server is silent ends at the same deadline")
    func silentServer() async throws {
      let server = try ForwardProxyServer(.silence)
      defer { server.stop() }
      let relay = try ForwardProxyServer(.serve(port: server.port, document: ""))
      defer { relay.stop() }
      let proxy = try proxy(relay.url)
      let tls = try ClientTLS(authorityFile: nil)
      await #expect(throws: ClientError.timedOut) {
        try await ClientEngine().connect(
          host: "acme.example.test", port: 443, tls: tls, through: proxy, timeout: .milliseconds(500))
      }
    }

    @Test("A proxy with TLS, one that does not listen, and a host with a line end are refused")
    func unusable() async throws {
      let client = try ClientEngine()
      let tls = try ClientTLS(authorityFile: nil)
      let port = try Places.freePort()
      for (url, host, words) in [
        ("https://127.0.0.1:1", "acme.example.test", "needs TLS"),
        ("http://127.0.0.1:\(port)", "acme.example.test", "the proxy http://127.0.0.1:\(port) (ALL_PROXY): "),
        ("http://127.0.0.1:1", "a\r\nX: y", "cannot be named"),
      ] {
        let proxy = try proxy(url)
        let error = await #expect(throws: ClientError.self) {
          try await client.connect(host: host, port: 443, tls: tls, through: proxy)
        }
        guard case .unreachable(let reason) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(reason.contains(words), "\(reason)")
      }
    }
  }
}
