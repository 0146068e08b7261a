import ByteCoding
import Cryptography
import Foundation
import FoundationNetworking
import TestSupport
import Testing
import Transport

/// A backend that accepts an upgrade to any protocol, and records what it receives.
private struct Acceptor {
  let process: ChildProcess
  let port: Int

  init() async throws {
    process = try PythonProgram.acceptor.start()
    let line = try await process.output.first("the backend") { $0.contains("port") }
    port = try JSON.object(line)["port"]?.number ?? 0
  }

  /// Everything that was received so far, by the target of the request. Sends a marker directly to the backend: when it
  /// is recorded, everything before it is recorded too.
  func events() async throws -> [String: [Event]] {
    let mark = "/mark/\(UUID().uuidString)"
    let url = try #require(URL(string: "http://127.0.0.1:\(port)\(mark)"))
    _ = try await URLSession.shared.data(from: url)
    _ = try await process.output.first("the marker request") { $0.contains(mark) }
    let events = try process.output.lines.dropFirst().map { try Event(JSON.object($0)) }
    return Dictionary(grouping: events, by: \.target)
  }

  struct Event {
    let target: String
    /// The lines of a head, with the request line; empty for another event.
    let head: [String]
    /// The lines of trailers.
    let trailers: [String]
    /// The protocol of a tunnel, through which the client sent bytes; `nil` for another event.
    let tunnel: String?

    init(_ event: [String: JSON]) throws {
      head = event["head"]?.list?.compactMap(\.text) ?? []
      trailers = event["trailers"]?.list?.compactMap(\.text) ?? []
      tunnel = event["protocol"]?.text
      let words = head.first?.split(separator: " ") ?? []
      target = event["target"]?.text ?? (words.count > 1 ? String(words[1]) : "")
    }

    /// Returns the values of the field `name`, in lowercase.
    func values(of name: String) -> [String] {
      head.dropFirst().filter { $0.lowercased().hasPrefix(name + ":") }
        .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }
  }
}

/// What must become of an attack: see `proxy_attacks.py`.
private enum Fate: String {
  case pass, most, may, tunnel, stay

  func requiresAdmission(by proxy: OuterProxy) -> Bool {
    switch self {
    case .pass, .tunnel: true
    case .most: proxy != .haproxy
    case .may, .stay: false
    }
  }
}

extension ForwardAuthTests {
  @Test(
    "No attack forges or removes an identity, or opens a tunnel other than a WebSocket, behind a documented proxy",
    arguments: OuterProxy.allCases)
  func attacks(_ kind: OuterProxy) async throws {
    let backend = try await Acceptor()
    defer { backend.process.kill() }
    try await RunningGate.serving { gate in
      let proxy = try await kind.start(gate, backend: backend.port)
      defer { proxy.process.kill() }
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let attacker = try PythonProgram.proxyAttacks.start(["\(proxy.port)", gate.certificateAuthority])
      defer { attacker.kill() }
      let table = try JSON.object(await attacker.output.first("the table") { $0.contains("cases") })
      let cases = try #require(table["cases"]?.list).map { ($0.list ?? []).compactMap(\.text) }
      #expect(cases.count >= 100)
      var answers: [[String: JSON]] = []
      for index in cases.indices {
        let proof = try device.headers(over: await visitor.challenge(), count: UInt32(index + 1))
        let fields = proof.fields.map { [$0.name, $0.value] }
        let order = try JSONSerialization.data(withJSONObject: ["case": index, "proof": fields] as [String: Any])
        attacker.write(Array(order) + [UInt8(ascii: "\n")])
        let lines = try await attacker.output.first(index + 2)
        answers.append(try JSON.object(try #require(lines.last)))
      }
      let events = try await backend.events()
      let keyID = Base64URL.encode(SHA256.hash(Base64.decode(device.keyID) ?? []))
      for (index, attack) in cases.enumerated() {
        let fate = try #require(Fate(rawValue: attack[1]))
        let own = events.filter { ($0.key + "?").contains("/case/\(index)?") }.flatMap(\.value)
        check(own, fate, of: kind, keyID: keyID, "\(kind.rawValue), \(attack[0]): \(answers[index])")
      }
      #expect(!events.keys.contains { $0.contains("smuggled") || $0.contains("_attest") || $0.hasPrefix("/attest") })
    }
  }

  /// Checks what the backend has received of one attack.
  private func check(
    _ events: [Acceptor.Event], _ fate: Fate, of proxy: OuterProxy, keyID: String, _ name: String
  ) {
    let heads = events.filter { !$0.head.isEmpty }
    #expect(heads.count <= (fate == .stay ? 0 : 1), "\(name) reached the backend")
    if fate.requiresAdmission(by: proxy) { #expect(heads.count == 1, "\(name) was not admitted") }
    if fate == .tunnel { #expect(events.contains { $0.tunnel != nil }, "\(name) opened no WebSocket") }
    for event in events {
      #expect(event.tunnel.map { $0.lowercased() == "websocket" } != false, "\(name) opened a tunnel")
      #expect(!(event.head + event.trailers).contains { $0.contains("spoofed") }, "\(name) brought \(event)")
    }
    for head in heads {
      let identity = ["assertion", "key-id", "app", "method"].map { head.values(of: "x-attest-\($0)") }
      #expect(identity.map(\.count) == [1, 1, 1, 1], "\(name) changed the identity: \(head.head)")
      #expect(identity[1] == [keyID] && identity[3] == ["app-attest"], "\(name) changed the identity: \(identity)")
      #expect(identity[0].first?.split(separator: ".").count == 3, "\(name) changed the assertion")
      let options = head.values(of: "connection").flatMap { $0.lowercased().split(separator: ",") }
        .map { $0.trimmingCharacters(in: .whitespaces) }
      #expect(Set(options).isSubset(of: ["close", "keep-alive", "upgrade"]), "\(name) named fields: \(options)")
      let protocols = head.values(of: "upgrade").map { $0.lowercased() }
      #expect(protocols.isEmpty || protocols == ["websocket"], "\(name) asked for \(protocols)")
      for field in ["http2-settings", "proxy-connection", "keep-alive", "te", "x-app-assert-keyid"] {
        #expect(head.values(of: field).isEmpty, "\(name) brought \(field)")
      }
    }
  }
}

/// The endpoint that proxies ask, reached by any bytes.
@Suite("The question of a proxy", .serialized, .timeLimit(.minutes(10)))
struct VerificationTests {
  private static func question(_ lines: [String], at target: String = "/attest/verify") -> [UInt8] {
    HeadCase.head(["GET \(target) HTTP/1.1", "Host: localhost", "Connection: close"] + lines)
  }

  @Test(
    "Below the endpoint the rest of the path is not judged",
    arguments: [
      "/attest/verify/a%2Fb", "/attest/verify/a//b", "/attest/verify//", "/attest/verify/a|b",
      "/attest/verify/a%252Fb", "/attest/verify/../challenge", "/attest/verify/100%", "/attest/verify/%00%c0%ae",
      "/attest/verify/a?b|c\"d", "/attest/verify/chat/7",
    ])
  func paths(_ target: String) async throws {
    try await RunningGate.serving { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let proof = try device.headers(over: await visitor.challenge()).lines
      let client = RawClient(gate)
      #expect(try await client.exchange(Self.question([], at: target)).response.status == 401)
      #expect(try await client.exchange(Self.question(proof, at: target)).response.status == 200)
    }
  }

  @Test(
    "Every other path is judged, also one that only resembles the endpoint",
    arguments: [
      "/attest/verify2/a%2Fb", "/attest//verify/a", "/attest/challenge/a%2Fb", "/attest/verify%2Fa",
      "/a/attest/verify//", "/attest/%76erify/a//b", "/attest/verify{", "/Attest/Verify/a//b",
    ])
  func otherPaths(_ target: String) async throws {
    try await RunningGate.serving { gate in
      let answer = try await RawClient(gate).exchange(Self.question([], at: target))
      #expect(answer.response.status == 400)
    }
  }

  @Test(
    "A head that the gate does not accept is answered with 401, and the connection closes",
    arguments: [
      ("head_too_large", ["Cookie: " + String(repeating: "x", count: 20 << 10)]),
      ("head_too_large", Array(repeating: "X-A: b", count: 110)),
      ("malformed_head", ["X-App-Name: J\u{fc}rgen"]),
      ("malformed_head", ["Expect: something"]),
      // nginx passes every control character of a value on, except for NUL and line ends.
      ("malformed_head", ["X-App-Assert-Nonce: a\u{1}b"]), ("malformed_head", ["X-App-Assert-Data: \u{7F}"]),
      ("malformed_head", ["Connection: a b"]),
      ("malformed_upgrade", ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]),
      ("body_too_large", ["Content-Length: 1000000"]),
    ])
  func heads(_ code: String, _ lines: [String]) async throws {
    try await RunningGate.serving { gate in
      for target in ["/attest/verify", "/attest/verify/a//b", "/attest/verify?a"] {
        // In Latin-1.
        let bytes = String(decoding: Self.question(lines, at: target), as: UTF8.self).unicodeScalars.map {
          UInt8(truncatingIfNeeded: $0.value)
        }
        let answer = try await RawClient(gate).exchange(bytes + Self.question([]))
        #expect(answer.response.status == 401 && answer.count == 1, "\(target) \(code)")
        #expect(answer.response.headers.values(of: "X-Attest-Error") == [code])
        #expect(answer.response.headers.values(of: "X-Attest-Key-Id") == [""])
        #expect(answer.response.headers.values(of: "WWW-Authenticate").count == 1)
      }
    }
  }

  @Test(
    "A head that is too long is answered with 401, however its path is written",
    arguments: [
      ("/attest/verify/" + String(repeating: "a", count: 17_000), 0),
      ("/attest/verify?" + String(repeating: "a", count: 17_000), 0), ("/attest/%76erify", 17_000),
      ("/attest/verify/\u{e4}%2F", 17_000),
    ])
  func longHeads(_ target: String, _ cookie: Int) async throws {
    try await RunningGate.serving { gate in
      let lines = ["Cookie: " + String(repeating: "x", count: cookie)]
      let answer = try await RawClient(gate).exchange(Self.question(lines, at: target))
      #expect(answer.response.status == 401)
      #expect(answer.response.headers.values(of: "X-Attest-Error") == ["head_too_large"])
      #expect(answer.response.headers.values(of: "X-Attest-Key-Id") == [""])
    }
  }

  @Test(
    "Malformed framing is answered with 400",
    arguments: [
      "Content-Length: 1\r\nContent-Length: 2", "Transfer-Encoding: gzip",
      "Content-Length: 1\r\nTransfer-Encoding: chunked", "X-A : b", "X-A: b\r\n c", "X-A: b\nX-B: c", "No colon",
      "X-A: b\0",
    ])
  func framing(_ lines: String) async throws {
    try await RunningGate.serving { gate in
      let answer = try await RawClient(gate).exchange(Self.question([lines]) + Self.question([]))
      #expect(answer.response.status == 400 && answer.count == 1)
    }
  }

  @Test("An upgrade to another protocol than WebSocket is refused with 403 and spends no nonce")
  func upgrades() async throws {
    try await RunningGate.serving { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let proof = try device.headers(over: await visitor.challenge()).lines
      let attempts = [
        ["Upgrade: h2c"], ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"],
        ["Upgrade: websocket, h2c"], ["Upgrade: h2c, websocket"], ["Upgrade: websocket", "Upgrade: h2c"],
        ["Upgrade: TLS/1.3"], ["Upgrade: websocket/13"], ["Upgrade: \"websocket\""],
        ["HTTP2-Settings: AAMAAABkAAQAAP__"], ["http2-settings:"],
      ]
      for target in ["/attest/verify", "/attest/verify/chat"] {
        for lines in attempts {
          let answer = try await RawClient(gate).exchange(Self.question(lines + proof, at: target)).response
          #expect(answer.status == 403, "\(lines)")
          #expect(answer.headers.values(of: "X-Attest-Error") == ["upgrade_refused"])
          #expect(answer.headers.values(of: "X-Attest-Key-Id") == [""])
        }
      }
      let answer = try await RawClient(gate).exchange(Self.question(["Upgrade: WebSocket"] + proof)).response
      #expect(answer.status == 204)
    }
  }

  @Test("Empty fields of a proof are no proof, as some proxies write the fields that a client did not send")
  func emptyFields() async throws {
    try await RunningGate.serving { gate in
      let names = ["X-App-Assert-KeyId", "X-App-Assert-Data", "X-App-Assert-Nonce"]
      let empty = try await RawClient(gate).exchange(Self.question(names.map { "\($0):" })).response
      #expect(empty.status == 401 && empty.headers.values(of: "X-Attest-Error") == ["no_credentials"])
      let part = try await RawClient(gate).exchange(Self.question([names[0] + ": A", names[1] + ":"])).response
      #expect(part.status == 401 && part.headers.values(of: "X-Attest-Error") == ["malformed_header"])
    }
  }
}

/// Upgrades on routes.
@Suite("Upgrades of ordinary requests", .serialized, .timeLimit(.minutes(10)))
struct ForeignUpgradeTests {
  private static let foreign = [
    ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"],
    ["Connection: Upgrade", "Upgrade: TLS/1.3"], ["Connection: Upgrade", "Upgrade: websocket/13"],
  ]

  @Test("An unknown protocol is ignored, and nothing about it reaches an upstream", arguments: foreign)
  func ignored(_ lines: [String]) async throws {
    let backend = try await HTTPBackend()
    defer { backend.process.kill() }
    try await RunningGate.serving(GateConfiguration(upstream: backend.url, routeExtras: ["forward: all"])) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let client = RawClient(gate)
      for target in ["/attest/challenge", "/.well-known/sallyport/jwks.json", "/"] {
        let proof = target == "/" ? try device.headers(over: await visitor.challenge()).lines : []
        // After its answer the gate closes the connection, on which the client may go on in another protocol.
        let request = HeadCase.head(["GET \(target) HTTP/1.1", "Host: localhost"] + lines + proof)
        let answer = try await client.exchange(request + HeadCase.head(["GET / HTTP/1.1", "Host: localhost"]))
        #expect(answer.response.status == 200 && answer.count == 1, "\(target)")
      }
      let request = try #require(try await backend.requests.first)
      for name in ["upgrade", "http2-settings", "connection"] { #expect(request.values(of: name).isEmpty, "\(name)") }
    }
  }

  @Test(
    "WebSocket is found in a list of protocols, and alone reaches the upstream",
    arguments: [["Upgrade: h2c, WebSocket"], ["Upgrade: websocket,h2c"], ["Upgrade: TLS/1.3", "Upgrade: websocket"]])
  func list(_ lines: [String]) async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await RunningGate.serving(GateConfiguration(upstream: witness.url)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      let proof = try device.headers(over: await visitor.challenge()).lines
      let handshake = HeadCase.handshake.filter { !$0.hasPrefix("Upgrade") && !$0.hasPrefix("Connection") }
      let settings = ["Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"]
      let (process, head) = try await RawClient(gate).open(
        HeadCase.head(["GET / HTTP/1.1"] + handshake + lines + settings + proof))
      defer { process.kill() }
      #expect(head.first == "HTTP/1.1 101 Switching Protocols")
      let received = try await witness.head(1)
      #expect(received.filter { $0.lowercased().hasPrefix("upgrade:") } == ["Upgrade: websocket"])
      #expect(received.filter { $0.lowercased().hasPrefix("connection:") } == ["Connection: Upgrade"])
      #expect(!received.contains { $0.lowercased().hasPrefix("http2-settings") })
    }
  }
}
