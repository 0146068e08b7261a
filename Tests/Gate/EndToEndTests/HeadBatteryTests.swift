import ByteCoding
import Foundation
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// The backend records every byte that it receives. Bytes without a record did not reach the backend.
@Suite("Protection of a backend", .serialized, .timeLimit(.minutes(10)))
struct HeadBatteryTests {
  @Test("A backend receives nothing of a request that is refused despite good credentials, or of a later request")
  func refusedHeads() async throws {
    #expect(HeadCase.all.count >= 150)
    #expect(Set(HeadCase.all.map(\.name)).count == HeadCase.all.count, "two cases have the same name")
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let credentials = try device.headers(over: await visitor.challenge()).lines
      let client = RawClient(gate)
      // The gate never reads bytes after a refused request, not even a handshake that would open a socket.
      let good = HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake + credentials)
      for head in HeadCase.all {
        let answer = try await client.exchange(head.bytes(credentials) + good)
        let text = String(decoding: answer.response.body, as: UTF8.self)
        #expect(answer.response.status == head.status, "\(head.name): \(text)")
        #expect(answer.count == 1, "\(head.name) was answered twice")
        #expect(try witness.connectionCount == 0, "\(head.name) reached the backend")
      }
      // No refused request has spent the credentials.
      let (process, answer) = try await client.open(good)
      defer { process.kill() }
      #expect(answer.first == "HTTP/1.1 101 Switching Protocols")
      _ = try await witness.head(1)
      #expect(try witness.connectionCount == 1)
    }
  }

  @Test("A backend receives nothing from refused clients")
  func refusedClients() async throws {
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let good = try device.headers(over: await visitor.challenge())
      let invalidHeaders = try [
        HeaderFields(), good.without(HeaderFields.dataName), TestDevice().headers(over: await visitor.challenge()),
        HeaderFields().with("X-Attest-Method", "app-attest").with("X-Attest-Key-Id", "mallory"),
      ]
      for headers in invalidHeaders { _ = try await visitor.refusal(of: headers) }
      let (process, head) = try await RawClient(gate).open(
        HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake + good.lines))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      #expect(try await witness.head(1).contains("X-Attest-Method: app-attest"))
      #expect(try witness.heads.count == 1)
      #expect(try witness.connectionCount == 1)
    }
  }

  @Test("A backend never receives a client's value in one of the gate's headers")
  func spoofedIdentity() async throws {
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      for (index, spoof) in Spoof.all.enumerated() {
        let credentials = try device.headers(over: await visitor.challenge(), count: UInt32(index + 1)).lines
        let (process, answer) = try await RawClient(gate).open(
          HeadCase.head(["GET /path?query=1 HTTP/1.1"] + HeadCase.handshake + spoof.lines + credentials))
        defer { process.kill() }
        #expect(answer.first == "HTTP/1.1 101 Switching Protocols", "\(spoof.lines)")
        let head = try await witness.head(index + 1)
        expect(head, toBe: spoof, of: device.keyID, method: "app-attest", app: GateConfiguration.appID)
      }
    }
  }

  @Test("A backend never receives an Android client's value in one of the gate's headers")
  func spoofedAndroidIdentity() async throws {
    let witness = try await Witness()
    let configuration = GateConfiguration(upstream: witness.url, android: AndroidConfiguration())
    try await RunningGate.serving(configuration) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredAndroidDevice()
      for (index, spoof) in Spoof.all.enumerated() {
        let credentials = try device.headers(over: await visitor.challenge()).lines
        let (process, answer) = try await RawClient(gate).open(
          HeadCase.head(["GET /path?query=1 HTTP/1.1"] + HeadCase.handshake + spoof.lines + credentials))
        defer { process.kill() }
        #expect(answer.first == "HTTP/1.1 101 Switching Protocols", "\(spoof.lines)")
        let head = try await witness.head(index + 1)
        expect(head, toBe: spoof, of: device.keyID, method: "android-key", app: AndroidMint.package)
      }
    }
  }

  @Test("A handshake that has one meaning in other words reaches a backend in the usual form")
  func toleratedHeads() async throws {
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      for (index, tolerated) in ToleratedHead.all.enumerated() {
        let credentials = try device.headers(over: await visitor.challenge(), count: UInt32(index + 1)).lines
        let (process, answer) = try await RawClient(gate).open(tolerated.bytes(credentials))
        defer { process.kill() }
        #expect(answer.first == "HTTP/1.1 101 Switching Protocols", "\(tolerated.name)")
        let head = try await witness.head(index + 1)
        #expect(head.first == "GET /path?query=1 HTTP/1.1", "\(tolerated.name)")
        let fields = Set(head.map { $0.lowercased() })
        #expect(fields.isSuperset(of: ["host: localhost", "connection: upgrade", "upgrade: websocket"]))
        #expect(fields.isSuperset(of: tolerated.kept.map { $0.lowercased() }), "\(tolerated.name): \(head)")
        let names = head.dropFirst().map { $0.prefix { $0 != ":" }.lowercased() }
        for name in tolerated.removed { #expect(!names.contains(name), "\(tolerated.name): \(head)") }
        for name in ["host", "upgrade", "connection"] { #expect(names.count { $0 == name } == 1, "\(tolerated.name)") }
      }
    }
  }

  private func expect(_ head: [String], toBe spoof: Spoof, of keyID: String, method: String, app: String) {
    #expect(head.first == "GET /path?query=1 HTTP/1.1")
    for line in head.dropFirst() {
      #expect(!line.lowercased().contains("mallory"), "\(spoof.lines) came through as \(line)")
      let name = line.prefix { $0 != ":" }
      #expect(!name.contains("_"), "\(line)")
      #expect(!name.lowercased().hasPrefix("x-app-"), "\(line)")
    }
    let names = head.dropFirst().map { $0.prefix { $0 != ":" }.lowercased() }
    let own = [
      "x-attest-method", "x-attest-key-id", "x-attest-app", "x-request-id", "x-forwarded-for", "x-forwarded-proto",
      "x-forwarded-host", "host", "connection", "upgrade", "sec-websocket-key", "sec-websocket-version",
    ]
    for name in own { #expect(names.filter { $0 == name }.count == 1, "\(name) after \(spoof.lines)") }
    #expect(head.contains("X-Attest-Method: \(method)"))
    #expect(head.contains("X-Attest-App: \(app)"))
    #expect(head.contains("X-Forwarded-For: 127.0.0.1"))
    #expect(!head.contains { $0.contains(keyID) }, "the upstream must not receive the key id itself")
    #expect(head.contains("X-Harmless: kept") == spoof.keepsHarmless, "\(spoof.lines)")
  }

  @Test("A backend receives the frames of a socket and nothing of an incomplete upgrade")
  func bytesBehindTheHead() async throws {
    let witness = try await Witness()
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let head = HeadCase.head(
        ["GET / HTTP/1.1"] + HeadCase.handshake + (try device.headers(over: await visitor.challenge()).lines))
      // A masked text frame in the same write as the head. It belongs to the new socket.
      let frame: [UInt8] = [0x81, 0x82, 1, 2, 3, 4, UInt8(ascii: "h") ^ 1, UInt8(ascii: "i") ^ 2]
      let (process, answer) = try await RawClient(gate).open(head + frame)
      defer { process.kill() }
      #expect(answer.first == "HTTP/1.1 101 Switching Protocols")
      _ = try await witness.process.output.first("the frame") { $0.contains(Hex.encode(frame)) }
    }
  }
}

/// A handshake that clients send although the letter of the rules wants it otherwise, and that all readers read alike.
struct ToleratedHead: Sendable {
  let name: String
  let target: String
  let lines: [String]
  /// The value of a last field, `X-Name`.
  let opaque: [UInt8]
  /// Lines that the backend gets.
  let kept: [String]
  /// Names in small letters that no line of the backend has.
  let removed: [String]

  init(
    _ name: String, target: String = "/path?query=1", _ lines: [String] = [], opaque: [UInt8] = [],
    kept: [String] = [], removed: [String] = []
  ) {
    (self.name, self.target, self.lines, self.opaque) = (name, target, lines, opaque)
    (self.kept, self.removed) = (kept, removed)
  }

  func bytes(_ credentials: [String]) -> [UInt8] {
    let start = ["GET \(target) HTTP/1.1"] + HeadCase.handshake + lines + credentials + ["X-Name: "]
    return Array(start.joined(separator: "\r\n").utf8) + opaque + Array("\r\n\r\n".utf8)
  }

  static let all = [
    ToleratedHead(
      "HTTP/2 next to WebSocket",
      ["Upgrade: h2c", "Connection: HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"], removed: ["http2-settings"]),
    ToleratedHead("an empty list of subprotocols", ["Sec-WebSocket-Protocol:"], removed: ["sec-websocket-protocol"]),
    ToleratedHead(
      "empty elements", ["Sec-WebSocket-Protocol: ,chat, ,v2,", "Sec-WebSocket-Extensions: permessage-deflate,"],
      kept: ["Sec-WebSocket-Protocol: chat, v2", "Sec-WebSocket-Extensions: permessage-deflate"]),
    ToleratedHead(
      "1,000 empty elements", ["Sec-WebSocket-Extensions: " + String(repeating: ",", count: 1000)],
      removed: ["sec-websocket-extensions"]),
    ToleratedHead("an absolute target", target: "https://localhost/path?query=1"),
    ToleratedHead("an absolute target in capitals", target: "HTTPS://LOCALHOST:443/path?query=1"),
    ToleratedHead("Latin-1", opaque: [0x4A, 0xFC, 0x72, 0x67, 0x65, 0x6E], kept: ["X-Name: J\u{fc}rgen"]),
    ToleratedHead("bytes that are never UTF-8", opaque: [0xFF, 0xC0, 0xAF], kept: ["X-Name: \u{ff}\u{c0}\u{af}"]),
  ]
}

/// Lines with which a client tries to forge the gate's headers.
struct Spoof: Sendable {
  let lines: [String]
  var keepsHarmless = true

  init(_ lines: String..., keepsHarmless: Bool = true) {
    self.lines = lines + ["X-Harmless: kept"]
    self.keepsHarmless = keepsHarmless
  }

  static let all: [Spoof] =
    names.map { Spoof("\($0): mallory") } + [
      Spoof("X-Attest-Method: mallory", "X-Attest-Method: mallory"),
      Spoof("x-attest-method:mallory", "X_ATTEST_METHOD: mallory"),
      Spoof("Connection: close, X-Attest-Method", "X-Attest-Method: mallory"),
      Spoof("Connection: X-Forwarded-For, X-Request-Id, Sec-WebSocket-Key, Host"),
      Spoof("Connection: X-Harmless", keepsHarmless: false),
      Spoof("Connection: X-Secret", "X-Secret: mallory"),
      Spoof("Keep-Alive: mallory", "Proxy-Connection: mallory", "TE: mallory", "Trailer: mallory"),
      Spoof("Proxy-Authorization: mallory", "HTTP2-Settings: mallory"),
    ]

  private static let names = [
    "X-Attest-Method", "X-Attest-Key-Id", "X-Attest-App", "X-Attest-Assertion", "X-Attest-Anything", "x-attest-METHOD",
    "X_Attest_Method", "X-Attest_Key-Id", "x_attest_app", "X-App-Anything", "X_App_Assert_KeyId", "X-SSL-Client-Verify",
    "X_SSL_CLIENT_S_DN", "X-Client-Cert", "X-Client-DN", "SSL-Client-Cert", "SSL_CLIENT_VERIFY", "Client-Cert",
    "Client-Cert-Chain", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host",
    "X-Forwarded-Client-Cert",
    "x_forwarded_for", "X-Real-IP", "X-Original-URL", "X-Original-Host", "X-Rewrite-URL", "X-Remote-User",
    "Remote-User",
    "Remote_User", "X-Auth-Request-User", "X-Authenticated-User", "True-Client-IP", "X-Request-Id", "x_request_id",
    "traceparent", "tracestate", "Any_Name_With_Underscores", "Proxy", "X-Forwarded", "X-Authentik-Username",
  ]
}
