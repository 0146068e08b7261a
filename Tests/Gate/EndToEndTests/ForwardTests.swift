import ByteCoding
import Cryptography
import Foundation
import Locking
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Forwarded requests", .serialized, .timeLimit(.minutes(10)))
struct ForwardTests {
  /// A device of a gate that forwards ordinary requests.
  private final class Client: Sendable {
    let visitor: Visitor
    let device: TestDevice
    private let counter = Counter()

    init(_ gate: RunningGate) async throws {
      visitor = try Visitor(gate)
      device = try await visitor.registeredDevice()
    }

    /// Returns headers that admit one request.
    func proof() async throws -> HeaderFields {
      try device.headers(over: await visitor.challenge(), count: counter.next())
    }

    func send(_ method: String, _ target: String, _ headers: HeaderFields = .init(), body: [UInt8] = []) async throws
      -> Response
    {
      try await visitor.send(method, target, proof().appending(headers), body: body)
    }

    /// Returns the bytes of a request whose remaining fields and body are `rest`.
    func bytes(_ line: String, _ rest: String) async throws -> [UInt8] {
      let fields = try await proof().lines.joined(separator: "\r\n")
      return Array("\(line) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\(rest)".utf8)
    }
  }

  private func serving(_ body: (Client, HTTPBackend, RunningGate) async throws -> Void) async throws {
    let backend = try await HTTPBackend()
    defer { backend.process.kill() }
    try await RunningGate.serving(GateConfiguration(upstream: backend.url, routeExtras: ["forward: all"])) { gate in
      try await body(Client(gate), backend, gate)
    }
  }

  @Test("An admitted request reaches the backend unchanged, with identity headers, and its answer reaches the client")
  func forwarded() async throws {
    try await serving { client, backend, _ in
      let body = SecureRandom.bytes(100_000)
      let answer = try await client.send("POST", "/a%20b?x=%2F&y", HeaderFields().with("X-Custom", "kept"), body: body)
      #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == Hex.encode(SHA256.hash(body)))
      let request = try #require(try await backend.requests.first)
      #expect(request.head?.first == "POST /a%20b?x=%2F&y HTTP/1.1")
      #expect(request.length == body.count && request.values(of: "Content-Length") == ["\(body.count)"])
      #expect(request.values(of: "X-Custom") == ["kept"] && request.values(of: "X-Forwarded-Proto") == ["https"])
      #expect(request.values(of: "X-Attest-Assertion").count == 1 && request.values(of: "X-Attest-App").count == 1)
      for name in ["X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce", "Connection", "Upgrade"] {
        #expect(request.values(of: name).isEmpty, "\(name)")
      }
      #expect(answer.headers.values(of: "X-Request-Id") == request.values(of: "X-Request-Id"))
    }
  }

  @Test(
    "Each request needs a new assertion; without one nothing reaches the backend", arguments: ["GET", "POST"])
  func refused(_ method: String) async throws {
    try await serving { client, backend, _ in
      let body = method == "POST" ? SecureRandom.bytes(200_000) : []
      #expect(try await client.visitor.send(method, "/", body: body).status == 401)
      let proof = try await client.proof()
      #expect(try await client.visitor.send(method, "/", proof).status == 200)
      #expect(try await client.visitor.send(method, "/", proof).headers.first("X-Attest-Error") == "nonce_used")
      #expect(try await backend.requests.count == 1)
    }
  }

  @Test("Without forward: all an ordinary request is refused, and no byte of it is forwarded")
  func upgradesOnly() async throws {
    let backend = try await HTTPBackend()
    defer { backend.process.kill() }
    try await RunningGate.serving(GateConfiguration(upstream: backend.url)) { gate in
      let answer = try await Client(gate).send("GET", "/")
      #expect(answer.status == 426)
      #expect(try await backend.requests.isEmpty)
    }
  }

  @Test("Answers with every kind of framing arrive complete")
  func answers() async throws {
    try await serving { client, _, _ in
      let chunked = try await client.send("GET", "/chunked")
      #expect(chunked.status == 200 && chunked.body == Array("abcdefg".utf8))
      #expect(chunked.headers.first("X-Trailer") == nil)
      for (path, text) in [("/until-close", "all of it"), ("/http10", "old"), ("/interim", "after")] {
        let answer = try await client.send("GET", path)
        #expect(answer.status == 200 && answer.body == Array(text.utf8), "\(path)")
      }
      for (path, status) in [("/204", 204), ("/304", 304)] {
        let answer = try await client.send("GET", path)
        #expect(answer.status == status && answer.body.isEmpty)
        #expect(answer.headers.first("Transfer-Encoding") == nil && answer.headers.first("Content-Length") == nil)
      }
      let hop = try await client.send("GET", "/hop").headers
      for name in ["X-Hop", "Keep-Alive", "X-Attest-Key-Id"] { #expect(hop.first(named: name) == nil, "\(name)") }
      #expect(hop.values(of: "Set-Cookie") == ["a=b", "c=d"])
      #expect(hop.values(of: "Date") == ["Sun, 06 Nov 1994 08:49:37 GMT"])
      #expect(hop.values(of: "X-Request-Id").count == 1 && hop.first("X-Request-Id") != "spoofed")
    }
  }

  @Test("The answer to HEAD has the length, and the connection stays open")
  func head() async throws {
    try await serving { client, _, gate in
      var bytes = try await client.bytes("HEAD /", "\r\n")
      bytes += try await client.bytes("GET /204", "Connection: close\r\n\r\n")
      let answer = try await RawClient(gate).exchange(bytes)
      #expect(answer.count == 2 && answer.response.headers.first("Content-Length") == "1234")
    }
  }

  @Test(
    "A malformed answer becomes a 502, and the client sees no part of it",
    arguments: ["both", "lengths", "status", "line", "head", "101", "large", "nothing"])
  func badAnswers(_ kind: String) async throws {
    try await serving { client, _, _ in
      let answer = try await client.send("GET", "/bad/\(kind)")
      #expect(answer.status == 502 && answer.headers.first("X-Attest-Error") == "upstream_unavailable")
    }
  }

  @Test("A truncated answer never looks complete", arguments: ["length", "chunk", "badchunk"])
  func cut(_ kind: String) async throws {
    try await serving { client, _, gate in
      let bytes = try await client.bytes("GET /cut/\(kind)", "\r\n")
      let text = String(decoding: try await RawClient(gate).everything(bytes), as: UTF8.self)
      #expect(text.hasPrefix("HTTP/1.1 200") && !text.contains("\r\n0\r\n\r\n"))
      #expect(kind != "length" || (text.contains("Content-Length: 100") && text.hasSuffix("abc")))
      // The counterpart: a complete answer has a proper end.
      let whole = try await client.bytes("GET /until-close", "Connection: close\r\n\r\n")
      #expect(String(decoding: try await RawClient(gate).everything(whole), as: UTF8.self).hasSuffix("\r\n0\r\n\r\n"))
    }
  }

  @Test(
    "A request with ambiguous framing is refused and closes the connection, and never reaches the backend",
    arguments: [
      "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
      "Content-Length: 4, 4\r\n\r\nabcd", "Content-Length: +4\r\n\r\nabcd",
      "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "Transfer-Encoding: xchunked\r\n\r\n",
      "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ])
  func smuggling(_ rest: String) async throws {
    try await serving { client, backend, gate in
      let answer = try await RawClient(gate).exchange(
        client.bytes("POST /", rest) + Array("GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect(answer.response.status == 400 && answer.count == 1)
      #expect(try await backend.requests.isEmpty)
    }
  }

  @Test(
    "A request with a malformed chunk behind its head is refused: the backend gets nothing of it",
    arguments: [
      "zz\r\nabc\r\n0\r\n\r\n", "3;x=y\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n",
      "-3\r\nabc\r\n0\r\n\r\n",
      "3\r\nabc\r\n0\r\nX-Trailer: y\r\n\r\n", "fffffffffffffffff\r\n",
    ])
  func badChunks(_ chunks: String) async throws {
    try await serving { client, backend, gate in
      let answer = try await RawClient(gate).exchange(
        client.bytes("POST /", "Transfer-Encoding: chunked\r\n\r\n\(chunks)")
          + Array("GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect([400, 413].contains(answer.response.status) && answer.count == 1)
      #expect(try await backend.requests.isEmpty)
    }
  }

  @Test("The gate sends 100 Continue to an admitted client that expects it, and not before")
  func expectation() async throws {
    try await serving { client, backend, gate in
      let (process, head) = try await RawClient(gate).open(
        client.bytes("POST /", "Expect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 100 Continue")
      process.write("hello")
      _ = try await process.output.first("the answer") { $0.hasPrefix("HTTP/1.1 200") }
      let request = try await backend.requests.first
      #expect(request?.length == 5 && request?.values(of: "Expect") == [])
      let refused = try await RawClient(gate).exchange(
        Array("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n".utf8))
      #expect(refused.response.status == 401 && refused.count == 1)
    }
  }

  @Test("An answer before the end of the request body closes the connection")
  func early() async throws {
    try await serving { client, backend, gate in
      let answer = try await RawClient(gate).exchange(
        client.bytes("POST /early", "Content-Length: 1000\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"))
      #expect(answer.response.status == 413 && answer.response.headers.first("Connection") == "close")
      #expect(answer.count == 1)
      #expect(try await backend.requests.count == 1)
    }
  }

  @Test("Safe requests share connections to the backend; a connection that is lost in between does not lose an answer")
  func keepAlive() async throws {
    try await serving { client, backend, _ in
      for _ in 0..<4 { _ = try await client.send("GET", "/") }
      let requests = try await backend.requests
      #expect(requests.count == 4 && Set(requests.map(\.connection)).count < 4)
      for _ in 0..<4 {
        #expect(try await client.send("GET", "/stale").status == 200)
        #expect(try await client.send("GET", "/").status == 200)
      }
    }
  }

  @Test("No value of a client arrives under a header name that the gate uses")
  func spoofing() async throws {
    let names = [
      "X-Attest-Assertion", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X_Attest_Key_Id", "X-Attest_App",
      "X-App-Other", "X-SSL-Client-Verify", "X-Client-Cert", "SSL-Client-Cert", "Client-Cert", "Client-Cert-Chain",
      "Forwarded",
      "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-User", "X-Real-IP", "X-Original-URL", "X-Rewrite-URL",
      "X-Remote-User", "Remote-User", "X-Auth-Request-User", "X-Authenticated-User", "True-Client-IP", "X-Request-Id",
      "traceparent", "tracestate", "Anything_Else", "X.Attest.App", "Proxy-Authorization", "TE", "Keep-Alive",
      "X-Listed", "Proxy", "X-Forwarded", "X-Authentik-Username",
    ]
    try await serving { client, backend, _ in
      for name in names {
        for variant in [name, name.lowercased(), name.uppercased()] {
          let spoofs = HeaderFields().with(variant, "spoofed").with(variant, "spoofed")
          let answer = try await client.send("GET", "/", spoofs.with("Connection", "X-Listed, X-Attest-App, Host"))
          #expect(answer.status == 200, "\(variant)")
        }
      }
      let requests = try await backend.requests
      #expect(requests.count == names.count * 3)
      for request in requests {
        #expect(!(request.head ?? []).contains { $0.contains("spoofed") }, "\(request.head ?? [])")
        for name in ["X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X-Forwarded-For", "X-Request-Id", "Host"] {
          #expect(request.values(of: name).count == 1, "\(name)")
        }
      }
    }
  }
}

private final class Counter: Sendable {
  private let count = LockedValue<UInt32>(0)

  func next() -> UInt32 {
    count.withLock {
      $0 += 1
      return $0
    }
  }
}

extension RawClient {
  /// Sends `bytes` and returns all received bytes until the gate closes the connection.
  func everything(_ bytes: [UInt8]) async throws -> [UInt8] {
    let process = try connect()
    defer { process.kill() }
    process.write(bytes)
    _ = try await process.exit(within: .seconds(15))
    return Array(try await process.output.text().utf8)
  }
}
