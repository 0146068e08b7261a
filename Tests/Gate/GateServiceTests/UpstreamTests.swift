import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import GateService
import Logging
import Observability
import SimulatedDevice
import Testing
import Transport

@Suite("Requests to the upstream")
struct UpstreamTests {
  private let service: ServiceBench
  private let device: MintedDevice
  private let count = SignCounter()

  init() async throws {
    let bench = try GateBench()
    service = try ServiceBench(bench, stripHeaders: ["X-Internal"])
    device = try await bench.registeredDevice()
  }

  private func order(_ headers: [(String, String)] = [], query: String = "") async throws -> any RelayPlan {
    try await relay(headers, query: query).order
  }

  private func relay(
    _ headers: [(String, String)], query: String
  ) async throws -> (order: any RelayPlan, head: [UInt8]) {
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    return try await service.relay(for: .upgrade(headers + proof, query: query))
  }

  /// Returns the request line and the fields of the head that the upstream receives.
  private func head(_ headers: [(String, String)] = [], query: String = "") async throws -> (line: String, HeaderFields)
  {
    try parse(try await relay(headers, query: query).head)
  }

  private func parse(_ head: [UInt8]) throws -> (line: String, HeaderFields) {
    let text = String(decoding: head, as: UTF8.self)
    #expect(text.hasSuffix("\r\n\r\n"))
    // "\r\n" is one character.
    var lines = text.dropLast(2).split(separator: "\r\n", omittingEmptySubsequences: false)
    let first = String(lines.removeFirst())
    return (
      first,
      HeaderFields(
        try lines.map { line in
          let colon = try #require(line.firstIndex(of: ":"))
          return (String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
        })
    )
  }

  @Test("The upstream receives the identity, set by the gate alone")
  func identity() async throws {
    let (line, fields) = try await head([("X-Custom", "kept"), ("Cookie", "a=b")], query: "?room=7&x=%2F")
    #expect(line == "GET /?room=7&x=%2F HTTP/1.1")
    let expected = [
      ("Host", "gate.example:6200"), ("Connection", "Upgrade"), ("Upgrade", "websocket"),
      ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13"), ("X-Custom", "kept"),
      ("Cookie", "a=b"), ("X-Attest-Key-Id", KeyHash(of: device.keyID).text), ("X-Attest-App", GateBench.appID),
      ("X-Attest-Method", "app-attest"), ("X-Request-Id", Request.id), ("X-Forwarded-For", "192.0.2.7"),
      ("traceparent", "00-\(Request.id)-\(Request.id.suffix(16))-01"),
      ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "gate.example:6200"),
    ]
    for (name, value) in expected { #expect(fields.values(named: name) == [value], "\(name)") }
    #expect(fields.values(of: "X-Attest-Assertion").count == 1)
    #expect(fields.fields.count == expected.count + 1)
  }

  static let spoofs = [
    "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Method", "X-Attest-Assertion", "X-Attest-Anything",
    "X-App-Assert-Other", "X-App-Anything", "X-SSL-Client-Verify", "X-Client-Cert", "X-Client-IP", "SSL-Client-Cert",
    "Client-Cert", "Client-Cert-Chain", "Client-Certificate", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto",
    "X-Forwarded-Host", "X-Forwarded-User", "X-Forwarded-Client-Cert", "X-Real-IP", "X-Original-URL",
    "X-Original-Forwarded-For", "X-Rewrite-URL", "X-Remote-User", "X-Remote-Addr", "Remote-User", "Remote-Groups",
    "X-Auth-Request-User", "X-Auth-Token", "X-Authenticated-User", "True-Client-IP", "X-Request-Id", "traceparent",
    "tracestate", "X-Internal", "X_Attest_Key_Id", "X-Attest_App", "Remote_User", "Anything_Else", "X_Custom",
    "Proxy", "X-Forwarded", "X-ForwardedFor", "X-Authentik-Username", "X-Pomerium-Jwt-Assertion", "X-Vouch-User",
    "X-WebAuth-User", "X-Amzn-Oidc-Data", "X-Goog-Authenticated-User-Email", "X-Goog-IAP-JWT-Assertion",
    "X-MS-Client-Principal", "X-MS-Token-AAD-Id-Token", "Cf-Access-Jwt-Assertion", "Tailscale-User-Login",
    "CF-Connecting-IP", "CF-Connecting-IPv6", "Fastly-Client-IP", "X-Cluster-Client-IP", "X-Envoy-External-Address",
    "Client-IP", "Do-Connecting-IP", "Fly-Client-IP", "X-Originating-IP", "X-ProxyUser-IP", "X-Arr-ClientCert",
    "X-Azure-ClientIP", "X-TLS-Client-Cert",
    "X.Attest.Key.Id", "X-Attest~App", "X'Remote'User",
    "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Content-Length",
  ]

  @Test(
    "No value of a client is forwarded under a name of the gate, in any case or repeated",
    arguments: spoofs)
  func spoofing(_ name: String) async throws {
    let mixed = String(
      name.enumerated().map {
        $0.offset.isMultiple(of: 2) ? Character($0.element.lowercased()) : Character($0.element.uppercased())
      })
    for variant in [name, name.lowercased(), name.uppercased(), mixed] {
      for copies in 1...2 {
        let (_, fields) = try await head(Array(repeating: (variant, "spoofed"), count: copies))
        #expect(!fields.fields.contains { $0.value.contains("spoofed") }, "\(variant)")
      }
    }
  }

  @Test("A field that is kept reaches the upstream, and the log names those that do not")
  func keptFields() async throws {
    let service = try ServiceBench(
      GateBench(enforcement: .off), keepHeaders: ["X-Auth-Token", "x-app-version"], logLevel: .debug)
    let request = Request.upgrade([
      ("X-AUTH-Token", "t"), ("X-App-Version", "1"), ("X-Auth-User", "spoofed"), ("X_Auth_Token", "spoofed"),
      ("Remote-User", "spoofed"), ("X-App-Assert-Signature", "s"), ("Connection", "X-Gone"), ("X-Gone", "spoofed"),
    ])
    let (_, fields) = try parse(try await service.relay(for: request).head)
    #expect(fields.values(named: "X-Auth-Token") == ["t"] && fields.values(named: "X-App-Version") == ["1"])
    #expect(!fields.fields.contains { $0.value == "spoofed" })
    let lines = try service.log.lines.filter { $0["message"] == "header fields of the client removed" }
    #expect(lines.map { $0["fields"] } == ["X-Auth-User X_Auth_Token Remote-User X-Gone"])
  }

  @Test("Fields named by Connection are removed, in any case and from several fields")
  func connectionOptions() async throws {
    let (_, fields) = try await head([
      ("Connection", "keep-alive, X-Session-User ,x-other"), ("connection", "\tX-Third"), ("X-Session-User", "spoofed"),
      ("X-OTHER", "spoofed"), ("x-third", "spoofed"), ("X-Fourth", "kept"),
    ])
    #expect(!fields.fields.contains { $0.value == "spoofed" })
    #expect(fields.first("X-Fourth") == "kept")
    #expect(fields.values(of: "Connection") == ["Upgrade"])
  }

  @Test("A protocol next to WebSocket, and what belongs to it, does not reach the upstream")
  func otherProtocols() async throws {
    let (_, fields) = try await head([
      ("Upgrade", "h2c, TLS/1.3"), ("Connection", "keep-alive, HTTP2-Settings"), ("HTTP2-Settings", "AAMAAABk"),
      ("http2-settings", "AAMAAABk"),
    ])
    #expect(fields.values(of: "Upgrade") == ["websocket"] && fields.values(of: "Connection") == ["Upgrade"])
    #expect(!fields.contains("HTTP2-Settings") && !fields.contains("Keep-Alive"))
    // Also where `Connection` does not name it.
    let (_, alone) = try await head([("HTTP2-Settings", "AAMAAABk"), ("http2-settings", "AAMAAABk")])
    #expect(!alone.contains("HTTP2-Settings"))
  }

  @Test("A value that is not UTF-8 reaches the upstream as it is, and the responder names the fields that have none")
  func opaqueValues() async throws {
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    var request = Request.upgrade(proof)
    var headers = request.headers
    headers.append(.init(name: "X-Name", octets: [0x4A, 0xFC, 0x72]))
    request = Request(
      id: Request.id, method: "GET", target: "/", path: "/", headers: headers, upgrade: request.upgrade)
    let head = try await service.relay(for: request).head
    let line = Array("\r\nX-Name: J".utf8) + [0xFC] + Array("r\r\n".utf8)
    #expect(head.indices.contains { head[$0...].starts(with: line) })
    let own = service.responder.ownFields
    for name in proof.map(\.0) + ["X-Attest-Method", "x-app-assert-anything"] {
      #expect(Array(name.utf8).withUnsafeBufferPointer(own.contains), "\(name)")
    }
    #expect(!Array("X-Name".utf8).withUnsafeBufferPointer(own.contains))
  }

  @Test("The limit of a response and the subprotocol of a TCP service are those of the route")
  func routeSettings() async throws {
    let route = try #require(
      Route(
        path: "/mqtt", upstream: .tcp(host: "127.0.0.1", port: 1883), subprotocol: "mqtt", maxResponseHead: 4096))
    let bench = try GateBench(enforcement: .off)
    let responder = GateResponder(
      gate: bench.gate, registrar: bench.registrar, challenges: bench.challenges, identities: service.identities,
      routes: try #require(RouteTable([route])), logger: service.log.logger)
    guard case .relay(let plan, _) = responder.respondAtOnce(to: .upgrade(path: "/mqtt"), from: ServiceBench.peer)
    else {
      throw ServiceBench.Unexpected.forwarded
    }
    #expect(plan.subprotocol == "mqtt" && plan.maxResponseHead == 4096)
    let usual = try await order()
    #expect(usual.subprotocol == nil && usual.maxResponseHead == 64 << 10)
  }

  @Test("A route rewrites target and Host for the upstream; the fields about the client's request stay the client's")
  func rewritten() async throws {
    let route = try #require(
      Route(
        path: "/game/eu", upstream: .webSocket(host: "127.0.0.1", port: 8080),
        rewrite: RequestRewrite(path: "/v2", host: "game.internal:8080")))
    let bench = try GateBench(enforcement: .off)
    let responder = GateResponder(
      gate: bench.gate, registrar: bench.registrar, challenges: bench.challenges, identities: service.identities,
      routes: try #require(RouteTable([route])), logger: service.log.logger)
    let headers = [
      ("X-Forwarded-Prefix", "spoofed"), ("X-Custom", "kept"), ("Connection", "Host"), ("X-Forwarded-Host", "spoofed"),
      ("X-Forwarded-Uri", "/spoofed"),
    ]
    guard
      case .relay(_, let bytes) = responder.respondAtOnce(
        to: .upgrade(headers, path: "/game/eu/room", query: "?x=/game/eu"), from: ServiceBench.peer)
    else { throw ServiceBench.Unexpected.forwarded }
    let (line, fields) = try parse(bytes)
    #expect(line == "GET /v2/room?x=/game/eu HTTP/1.1")
    for (name, value) in [
      ("Host", "game.internal:8080"), ("X-Forwarded-Host", "gate.example:6200"), ("X-Forwarded-Prefix", "/game/eu"),
      ("X-Forwarded-Uri", "/game/eu/room?x=/game/eu"),
      ("X-Custom", "kept"),
    ] { #expect(fields.values(named: name) == [value], "\(name)") }
  }

  @Test("Connection cannot remove fields of the handshake or of the gate")
  func connectionAttack() async throws {
    let (_, fields) = try await head([
      ("Connection", "Host, Sec-WebSocket-Key, Sec-WebSocket-Version, X-Attest-Key-Id, X-Forwarded-For, X-Request-Id")
    ])
    for name in [
      "Host", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "X-Attest-Key-Id", "X-Forwarded-For", "X-Request-Id",
    ] {
      #expect(fields.values(named: name).count == 1, "\(name)")
    }
  }

  @Test(
    "Fields with names similar to the gate's are forwarded",
    arguments: [
      "X-Attestation", "X-Application", "Remote", "X-Authority", "Clients", "Authorization", "Origin2",
      "X-Authorization", "X-Authentic", "Proxied", "X-Forward", "Tailscaled", "X-CSRF-Token", "X-Requested-With",
    ])
  func kept(_ name: String) async throws {
    let (_, fields) = try await head([(name, "kept"), (name, "kept too")])
    #expect(fields.values(named: name) == ["kept", "kept too"])
  }

  @Test("The key id, the assertion and the nonce are not forwarded")
  func secrets() async throws {
    let proof = try device.fields(over: service.bench.nonce(), count: count.next())
    let head = try await service.relay(for: .upgrade(proof)).head
    let text = String(decoding: head, as: UTF8.self)
    for (_, value) in proof { #expect(!text.contains(value)) }
  }

  /// The client certificate of RFC 9440, appendix A.
  private static let certificateOfRFC9440 =
    "MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0"
    + "ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaU"
    + "gmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAW"
    + "gBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1w"
    + "bGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBV"
    + "oU4hBVZ1yhk="

  @Test("X-012 The certificate of RFC 9440 is passed on as in its example, and one of a client never is")
  func example() async throws {
    let der = try #require(Data(base64Encoded: Self.certificateOfRFC9440))
    let certificate = PeerCertificate(der: [UInt8](der), fingerprint: [2], subject: "CN=BC")
    let peer = Peer(address: .ipv4([192, 0, 2, 1], port: 1), verifiedCertificate: certificate)
    let spoofed = [("Client-Cert", ":AAAA:"), ("client_cert", ":AAAA:"), ("Client-Cert-Chain", ":AAAA:")]
    let (_, fields) = try parse(try await service.relay(for: .upgrade(spoofed), from: peer).head)
    #expect(fields.values(of: "Client-Cert") == [":" + Self.certificateOfRFC9440 + ":"])
    #expect(fields.values(of: "client_cert").isEmpty && fields.values(of: "Client-Cert-Chain").isEmpty)
    // A device with an assertion has no certificate.
    #expect(try await head(spoofed).1.values(of: "Client-Cert").isEmpty)
  }

  @Test("X-012 A debug build is announced by its certificate in the form of RFC 9440, without a key")
  func certificate() async throws {
    let certificate = PeerCertificate(der: [1, 2, 0xFF], fingerprint: [2], subject: "CN=MudApp Debug Client")
    let peer = Peer(address: .ipv6([UInt8](repeating: 0, count: 15) + [1], port: 1), verifiedCertificate: certificate)
    let head = try await service.relay(
      for: .upgrade([("X-Attest-Key-Id", "spoofed"), ("Client-Cert", ":AAAA:")]), from: peer
    ).head
    let (_, fields) = try parse(head)
    #expect(fields.values(of: "Client-Cert") == [":AQL/:"])
    #expect(fields.values(of: "X-Attest-Method") == ["mtls"])
    #expect(fields.first("X-Attest-Key-Id") == nil && fields.first("X-Attest-App") == nil)
    #expect(fields.values(of: "X-Forwarded-For") == ["::1"])
  }

  @Test("Without enforcement the gate announces an anonymous client and removes spoofed fields")
  func open() async throws {
    let service = try ServiceBench(GateBench(enforcement: .off))
    let peer = Peer(address: .unix(""))
    let head = try await service.relay(for: .upgrade([("X-Attest-Key-Id", "spoofed")]), from: peer).head
    let (_, fields) = try parse(head)
    #expect(fields.values(of: "X-Attest-Method") == ["none"])
    #expect(fields.first("X-Attest-Key-Id") == nil)
    #expect(fields.values(of: "X-Forwarded-For") == ["unknown"])
  }

  @Test("The 101 has the request id and the upstream's fields, except fields of the gate")
  func answerFields() async throws {
    let upstream = HeaderFields([
      .init(name: "Set-Cookie", value: "a=b"), .init(name: "x-request-id", value: "theirs"),
      .init(name: "X-Attest-Error", value: "theirs"),
    ])
    #expect(
      try await order().answerFields(from: upstream).fields == [
        .init(name: "Set-Cookie", value: "a=b"), .init(name: "X-Request-Id", value: Request.id),
      ])
  }

  @Test(
    "An unavailable upstream is answered with 502, and the log has the reason",
    arguments: [
      (UpstreamError.unreachable("connection refused"), "upstream_connect", "connection refused"),
      (.timedOut, "upstream_time", nil),
      (.misbehaved("no Sec-WebSocket-Accept"), "upstream_protocol", "no Sec-WebSocket-Accept"),
    ] as [(UpstreamError, String, String?)])
  func unavailable(_ fault: UpstreamError, step: String, detail: String?) async throws {
    let response = try await order().response(to: fault)
    #expect(response.status == 502)
    #expect(response.headers.first("X-Attest-Error") == "upstream_unavailable")
    #expect(response.headers.first("X-Request-Id") == Request.id)
    #expect(!String(decoding: response.body, as: UTF8.self).contains("refused"))
    let line = try #require(try service.log.lines.last)
    #expect(line["code"] == "upstream_unavailable" && line["step"] == step && line["detail"] == detail)
    #expect(line["route"] == "/" && line["upstream"] != nil && line["method"] != nil && line["app"] != nil)
  }

  @Test("If the gate has no descriptor left, it is overloaded, and its upstream is not to blame")
  func exhausted() async throws {
    let response = try await order().response(to: .exhausted("socket: Too many open files"))
    #expect(response.status == 503 && response.headers.first("X-Attest-Error") == "overloaded")
    let line = try #require(try service.log.lines.last)
    #expect(line["step"] == "descriptors" && line["detail"] == "socket: Too many open files")
    let metrics = String(decoding: await service.metrics.registry.exposition(), as: UTF8.self)
    #expect(!metrics.contains("sallyport_upstream_failing{route=\"/\"} 1"), "\(metrics)")
  }

  @Test("The refusal of an upstream is passed on without fields of the gate")
  func upstreamRefusal() async throws {
    let refusal = Response(
      status: 418,
      headers: HeaderFields([
        ("Content-Type", "text/x"), ("x-attest-error", "spoofed"), ("X-ATTEST-Key-Id", "spoofed"),
        ("X_Attest_Error", "spoofed"), ("X-Request-Id", "spoofed"), ("Connection", "X-Hop, close"),
        ("X-Hop", "spoofed"),
        ("Transfer-Encoding", "spoofed"), ("Content-Length", "spoofed"), ("Retry-After", "9"),
      ]), body: Array("teapot".utf8))
    let response = try await order().response(to: .refused(refusal))
    #expect(response.status == 418 && response.body == refusal.body)
    #expect(
      response.headers
        == HeaderFields([("Content-Type", "text/x"), ("Retry-After", "9"), ("X-Request-Id", Request.id)]))
    let line = try #require(try service.log.lines.last)
    #expect(line["code"] == "upstream_refused" && line["request_id"] == Request.id && line["status"] == "418")
  }

  @Test("A session logs two lines: one when it opens and one when it closes")
  func sessionLines() async throws {
    let order = try await order(query: "?token=secret")
    order.opened(SessionControl { _, _ in })
    order.closed(
      SessionSummary(
        end: .closedByGate(3008, reason: "too old"), bytesFromClient: 12, bytesFromUpstream: 34,
        duration: .milliseconds(1500)))
    let lines = try service.log.lines
    #expect(lines.map { $0["message"] } == ["session opened", "session closed"])
    for line in lines {
      #expect(line["request_id"] == Request.id && line["app"] == GateBench.appID && line["method"] == "app-attest")
      #expect(line["key"] == KeyHash(of: device.keyID).short && line["route"] == "/" && line["path"] == "/")
    }
    let end = try #require(lines.last)
    #expect(end["end"] == "closed_by_gate" && end["close_code"] == "3008" && end["detail"] == "too old")
    #expect(end["bytes_from_client"] == "12" && end["bytes_from_upstream"] == "34" && end["duration_ms"] == "1500")
    #expect(try !service.log.text.contains("secret"))
  }
}
