import Crypto
import Wire
import Foundation
import NIOSSL
import TestSupport
import Testing

@testable import HTTPClientTransport

@Suite("Exchanges through a proxy", .timeLimit(.minutes(2)))
struct ProxiedExchangeTests {
  private static let name = "provider.example.test"

  private func transport(
    _ proxy: String, variable: String = "https_proxy", authority: String? = nil, pins: Set<[UInt8]> = [],
    largest: Int = 1 << 18, time: Duration = .seconds(60), offersHTTP2: Bool = false
  ) -> HTTPClientTransport {
    HTTPClientTransport(
      .init(
        authorityFile: authority, pins: pins, largestAnswer: largest, exchangeTime: time,
        proxies: ProxyVariables { $0 == variable ? proxy : nil }, offersHTTP2: offersHTTP2))
  }

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  /// Calls `body` with a server that has a certificate for `name`, and a proxy that leads to it.
  private func withServer(
    _ body: (HTTPSServer, ForwardProxyServer) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try await HTTPSServer("DNS:\(Self.name),IP:192.0.2.7,IP:127.0.0.1", in: folder)
      defer { server.stop() }
      let proxy = try ForwardProxyServer(.serve(port: server.port, document: "{}"))
      defer { proxy.stop() }
      try await body(server, proxy)
    }
  }

  private struct Echo: Decodable {
    let line: String
    let fields: [String: String]
    let body: String
  }

  @Test func `https goes through a tunnel, and the proxy sees host, port and its own credentials only`() async throws {
    try await withServer { server, proxy in
      let transport = transport("http://us%40r:pa%3Ass@127.0.0.1:\(proxy.port)", authority: server.authorityFile)
      for port in ["", ":8443"] {
        let request = HTTPRequest(
          method: .post, url: try url("https://\(Self.name)\(port)/token?a=b%20c#d"),
          headers: [HTTPField("Authorization", "Bearer t0ken")], body: Array("grant=x".utf8))
        let answer = try await transport.send(request)
        let echo = try JSONDecoder().decode(Echo.self, from: Data(answer.body))
        #expect(answer.status == 200 && echo.line == "POST /token?a=b%20c HTTP/1.1" && echo.body == "grant=x")
        #expect(echo.fields["Host"] == Self.name + port && echo.fields["Authorization"] == "Bearer t0ken")
        #expect(echo.fields["Proxy-Authorization"] == nil)
      }
      let authorization = "Proxy-Authorization: Basic " + Data("us@r:pa:ss".utf8).base64EncodedString()
      #expect(
        proxy.heads
          == [":443", ":8443"].map {
            "CONNECT \(Self.name)\($0) HTTP/1.1\r\nHost: \(Self.name)\($0)\r\n\(authorization)"
          })
    }
  }

  @Test func `http is sent to the proxy with the whole URL`() async throws {
    let proxy = try ForwardProxyServer(.serve(port: 1, document: #"{"a":1}"#))
    defer { proxy.stop() }
    let transport = transport("http://u:p@127.0.0.1:\(proxy.port)", variable: "http_proxy")
    let answer = try await transport.send(HTTPRequest(url: try url("http://\(Self.name):8080/jwks?a=b")))
    #expect(answer.status == 200 && answer.body == Array(#"{"a":1}"#.utf8))
    let lines = try #require(proxy.heads.first).components(separatedBy: "\r\n")
    #expect(lines[0] == "GET http://\(Self.name):8080/jwks?a=b HTTP/1.1")
    #expect(lines.contains("Host: \(Self.name):8080") && lines.contains("Proxy-Authorization: Basic dTpw"))
  }

  @Test func `this machine and the hosts of no_proxy are asked directly`() async throws {
    let server = try DrippingServer(["/jwks": "{}"])
    defer { server.stop() }
    server.mend()
    // Nothing listens at the port of the proxy.
    let transport = transport("http://127.0.0.1:1", variable: "ALL_PROXY")
    #expect(try await transport.send(HTTPRequest(url: try url(server.base + "/jwks"))).status == 200)
  }

  @Test func `the certificate must be for the name of the URL, whatever the proxy says`() async throws {
    try await withServer { server, proxy in
      let transport = transport(proxy.url, authority: server.authorityFile)
      let error = await #expect(throws: TransportError.self) {
        try await transport.send(HTTPRequest(url: try url("https://other.example.test/")))
      }
      guard case .untrusted = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      // The library compares an address with that of the other end, which is the proxy's, and the server has a
      // certificate for it.
      for address in ["192.0.2.7", "192.0.2.8", "[2001:db8::1]"] {
        let error = await #expect(throws: TransportError.self) {
          try await transport.send(HTTPRequest(url: try url("https://\(address)/")))
        }
        #expect(error?.description.contains("NO_PROXY") == true)
      }
      #expect(server.requests.isEmpty)
    }
  }

  @Test func `pins count within a tunnel: no request is sent to another key`() async throws {
    try await withServer { server, proxy in
      let pem = try NIOSSLCertificate.fromPEMFile(server.authorityFile)
      let key = Array(SHA256.hash(data: try pem[0].extractPublicKey().toSPKIBytes()))
      let request = HTTPRequest(url: try url("https://\(Self.name)/"))
      let pinned = transport(proxy.url, authority: server.authorityFile, pins: [key])
      #expect(try await pinned.send(request).status == 200)
      let other = transport(proxy.url, authority: server.authorityFile, pins: [[UInt8](repeating: 1, count: 32)])
      let error = await #expect(throws: TransportError.self) { try await other.send(request) }
      guard case .untrusted = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(server.requests.count == 1)
    }
  }

  @Test func `a proxy with TLS is verified, and carries https and http`() async throws {
    try await withServer { server, plain in
      try await Places.withTemporaryFolder { folder in
        let file = folder + "/proxy.pem"
        try await HTTPSServer.makeCertificate("DNS:localhost", at: file, key: folder + "/proxy.key")
        let relay = try ChildProcess(
          Places.tool("python3"), ["-c", Self.relay, file, folder + "/proxy.key", "\(plain.port)"])
        defer { relay.kill() }
        let port = try await relay.output.first("the port") { UInt16($0) != nil }
        let options = HTTPClientTransport.Options(authorityFile: server.authorityFile, exchangeTime: .seconds(60))
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(server.authorityFile)
        let proxies = ProxyVariables { $0 == "ALL_PROXY" ? "https://localhost:\(port)" : nil }
        let proxy = try #require(try proxies.proxy(for: .https, host: Self.name, port: 443))
        let trusting = ProxiedExchange(options, tls: tls, rootsOfProxies: .file(file))
        for scheme in ["https", "http"] {
          let request = HTTPRequest(url: try url("\(scheme)://\(Self.name)/"))
          #expect(try await trusting.send(request, through: proxy).status == 200)
        }
        let heads = plain.heads.count
        let other = ProxiedExchange(options, tls: tls, rootsOfProxies: .file(server.authorityFile))
        let error = await #expect(throws: TransportError.self) {
          try await other.send(HTTPRequest(url: try url("https://\(Self.name)/")), through: proxy)
        }
        guard case .untrusted(let reason) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(reason.contains("the proxy https://localhost:\(port) (ALL_PROXY)") && plain.heads.count == heads)
      }
    }
  }

  /// Ends TLS and passes the bytes on to a port of loopback.
  private static let relay = """
    import socket, ssl, sys, threading
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    def pump(source, target):
        try:
            while data := source.recv(65536): target.sendall(data)
        except OSError: pass
        for end in source, target:
            try: end.shutdown(socket.SHUT_RDWR)
            except OSError: pass
    def serve(plain):
        try: client = context.wrap_socket(plain, server_side=True)
        except OSError: return
        server = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
        threading.Thread(target=pump, args=(client, server), daemon=True).start()
        pump(server, client)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    """

  // MARK: Proxies that do not behave

  @Test(arguments: [
    ("HTTP/1.1 403 Filtered\r\n\r\n", "status 403"), ("HTTP/1.1 407 x\r\n\r\n", "status 407"), ("", "closed"),
    ("SSH-2.0-OpenSSH_9\r\n", "did not answer CONNECT"),
    ("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "before the client did"),
    ("HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 1 << 15), "more than 16384 bytes"),
  ])
  func `a refusal names the proxy and not its password, and nothing is in doubt`(
    _ answer: String, _ words: String
  ) async throws {
    let proxy = try ForwardProxyServer(.answer(Array(answer.utf8)))
    defer { proxy.stop() }
    let transport = transport("http://user:hunter2@127.0.0.1:\(proxy.port)")
    let error = await #expect(throws: TransportError.self) {
      try await transport.send(HTTPRequest(method: .post, url: try url("https://\(Self.name)/token"), body: [1]))
    }
    guard case .unreachable(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains(words) && reason.contains("127.0.0.1:\(proxy.port) (https_proxy)"), "\(reason)")
    #expect(!reason.contains("hunter2"))
  }

  @Test(arguments: [
    (407, "it refuses the user and the password of https_proxy"), (403, "allow the host and port at the proxy"),
  ])
  func `a proxy that refuses a tunnel for HTTP2 is named with its advice, and nothing is in doubt`(
    _ status: Int, _ words: String
  ) async throws {
    let proxy = try ForwardProxyServer(.answer(Array("HTTP/1.1 \(status) x\r\nContent-Length: 0\r\n\r\n".utf8)))
    defer { proxy.stop() }
    let transport = transport("http://user:hunter2@127.0.0.1:\(proxy.port)", offersHTTP2: true)
    let error = await #expect(throws: TransportError.self) {
      try await transport.send(HTTPRequest(method: .post, url: try url("https://\(Self.name)/push"), body: [1]))
    }
    guard case .unreachable(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains(words) && reason.contains("127.0.0.1:\(proxy.port) (https_proxy)"), "\(reason)")
    #expect(!reason.contains("hunter2"))
  }

  @Test func `a tunnel that ends before the handshake leaves no doubt`() async throws {
    let proxy = try ForwardProxyServer(.answer(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)))
    defer { proxy.stop() }
    let error = await #expect(throws: TransportError.self) {
      try await transport(proxy.url).send(HTTPRequest(method: .post, url: try url("https://\(Self.name)/"), body: [1]))
    }
    switch error {
    case .unreachable, .untrusted: break
    case .lost, .malformed, .tooLarge, nil: Issue.record("\(String(describing: error))")
    }
  }

  @Test func `407 to a request in absolute form is the proxy's, with its hint`() async throws {
    let proxy = try ForwardProxyServer(.answer(Array("HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n".utf8)))
    defer { proxy.stop() }
    let transport = transport(proxy.url, variable: "http_proxy")
    let error = await #expect(throws: TransportError.self) {
      try await transport.send(HTTPRequest(url: try url("http://\(Self.name)/")))
    }
    #expect(error?.description.contains("write http_proxy=http://USER:PASSWORD@HOST:PORT") == true)
  }

  @Test(arguments: [Array("HTTP/1.1 200 OK\r\nA: ".utf8), nil])
  func `a proxy that drips or is silent leaves the server unreached in time, without doubt`(
    _ bytes: [UInt8]?
  ) async throws {
    let proxy = try ForwardProxyServer(bytes.map { .drip($0) } ?? .silence)
    defer { proxy.stop() }
    let transport = transport(proxy.url, time: .milliseconds(600))
    let error = await #expect(throws: TransportError.self) {
      try await transport.send(HTTPRequest(url: try url("https://\(Self.name)/")))
    }
    guard case .unreachable = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `an answer through a proxy has the same bounds: its size and the time for the whole`() async throws {
    try await withServer { server, proxy in
      let small = transport(proxy.url, authority: server.authorityFile, largest: 64)
      await #expect(throws: TransportError.tooLarge(64)) {
        try await small.send(HTTPRequest(url: try url("https://\(Self.name)/")))
      }
    }
    let proxy = try ForwardProxyServer(.drip(Array("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n".utf8)))
    defer { proxy.stop() }
    let plain = transport(proxy.url, variable: "http_proxy", time: .milliseconds(600))
    await #expect(throws: TransportError.lost("no complete answer within the time allowed")) {
      try await plain.send(HTTPRequest(url: try url("http://\(Self.name)/")))
    }
  }

  @Test func `a proxy that does not listen is named`() async throws {
    let port = try Places.freePort()
    let error = await #expect(throws: TransportError.self) {
      try await transport("http://127.0.0.1:\(port)").send(HTTPRequest(url: try url("https://\(Self.name)/")))
    }
    guard case .unreachable(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.contains("the proxy http://127.0.0.1:\(port) (https_proxy)"))
  }

  @Test func `a server that does not listen is reported in words for people`() async throws {
    let port = try Places.freePort()
    let direct = HTTPClientTransport(.init(exchangeTime: .seconds(20)))
    await #expect(throws: TransportError.unreachable("Connection refused")) {
      try await direct.send(HTTPRequest(url: try url("http://127.0.0.1:\(port)/")))
    }
  }

  @Test func `a certificate of an unknown CA is reported in words for people`() async throws {
    try await withServer { server, proxy in
      let words = "the TLS handshake failed: the certificate was not issued by a trusted CA, or has expired"
      await #expect(throws: TransportError.untrusted(words)) {
        try await transport(proxy.url).send(HTTPRequest(url: try url("https://\(Self.name)/")))
      }
      #expect(server.requests.isEmpty)
    }
  }

  @Test func `a faulty variable is named before anything is sent`() async throws {
    let error = await #expect(throws: TransportError.self) {
      try await transport("socks5://u:hunter2@127.0.0.1:1").send(HTTPRequest(url: try url("https://\(Self.name)/")))
    }
    guard case .unreachable(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.hasPrefix("https_proxy: a SOCKS proxy") && !reason.contains("hunter2"))
  }
}
