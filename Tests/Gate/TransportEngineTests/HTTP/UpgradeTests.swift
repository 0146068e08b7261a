import Testing
import Transport

@testable import TransportEngine

@Suite struct UpgradeTests {
  private func upgrade(_ text: String) throws -> Upgrade { try #require(RequestHead.parse(text).head).upgrade }

  @Test("An opening handshake is recognized")
  func handshakeIsRecognised() throws {
    #expect(try upgrade(handshake()) == .webSocket(UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ==")))
  }

  @Test(
    "Case, other options and unrelated fields do not matter",
    arguments: [
      handshake(replacing: [("Upgrade", "WebSocket"), ("Connection", "keep-alive, UPGRADE")]),
      handshake(replacing: [("Connection", "keep-alive")], adding: ["connection: upgrade"]),
      handshake(adding: ["Content-Length: 0", "Origin: https://a.example"]),
      handshake("GET /path?query HTTP/1.1"),
      handshake(replacing: [("Upgrade", "websocket, h2c")]), handshake(replacing: [("Upgrade", "h2c ,WebSocket")]),
      handshake(replacing: [("Upgrade", "TLS/1.3,, websocket,")]), handshake(adding: ["Upgrade: websocket"]),
      handshake(replacing: [("Upgrade", "h2c")], adding: ["upgrade: websocket"]),
      handshake(adding: ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits; a=\"b\" , x"]),
    ])
  func variations(text: String) throws {
    #expect(try upgrade(text) == .webSocket(UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ==")))
  }

  @Test("Subprotocols keep the client's order over all fields")
  func subprotocols() throws {
    let text = handshake(adding: ["Sec-WebSocket-Protocol: b, a", "sec-websocket-protocol: c"])
    let intent = UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ==", subprotocols: ["b", "a", "c"])
    #expect(try upgrade(text) == .webSocket(intent))
  }

  @Test(
    "Without Upgrade to WebSocket and its option in Connection there is no upgrade",
    arguments: ["h2c", "h2c, TLS/1.3", "websocket/13", "", ",", "web socket", "xwebsocket", "\"websocket\""].map {
      handshake("POST / HTTP/1.1", replacing: [("Upgrade", $0)])
    } + [
      request(), handshake(replacing: [("Connection", nil)]), handshake(replacing: [("Connection", "keep-alive")]),
      handshake(replacing: [("Upgrade", nil)]), handshake("POST / HTTP/1.1", replacing: [("Upgrade", nil)]),
    ])
  func nothing(text: String) throws {
    #expect(try upgrade(text) == .none)
  }

  static let broken: [(UpgradeRequestError, String)] =
    [
      (.method, handshake("POST / HTTP/1.1")), (.method, handshake("get / HTTP/1.1")),
      (.method, handshake("HEAD / HTTP/1.1")),
      (.version, handshake(adding: ["Sec-WebSocket-Version: 13"])),
      (.key, handshake(adding: ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="])),
      (.body, handshake(adding: ["Content-Length: 1"])), (.body, handshake(adding: ["Transfer-Encoding: chunked"])),
      (.subprotocols, handshake(adding: ["Sec-WebSocket-Protocol: a", "Sec-WebSocket-Protocol: b, a"])),
    ]
    + ["12", "8", "", "13, 13", "013", "13;a", nil].map {
      (.version, handshake(replacing: [("Sec-WebSocket-Version", $0)]))
    }
    + [
      nil, "", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25j", "c2hvcnQ=",
      "dGhlIHNhbXBsZSBub25jZSE=", "dGhlIHNhbXBsZS-ub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ== x",
    ].map { (.key, handshake(replacing: [("Sec-WebSocket-Key", $0)])) }
    + ["a, a", "a,, a", "a b", "a;b", "\"a\"", "\u{e9}"].map {
      (.subprotocols, handshake(adding: ["Sec-WebSocket-Protocol: \($0)"]))
    }
    + ["a;", "a;,", "a,, b c", "a; b=", "a; b=\"\"", "a; b=\"c", "a; b=\"c d\"", "a b", "a=b", "a; =b", "a; b=c d"].map
  {
    (.extensions, handshake(adding: ["Sec-WebSocket-Extensions: \($0)"]))
  }

  @Test("A handshake that breaks one rule is refused with that rule", arguments: UpgradeTests.broken)
  func refused(rule: UpgradeRequestError, text: String) throws {
    guard rule == .subprotocols else {
      #expect(try upgrade(text) == .fault(rule.requestError()))
      return
    }
    guard case .fault(.malformedUpgrade(let reason)) = try upgrade(text) else {
      Issue.record("\(try upgrade(text))")
      return
    }
    #expect(reason.hasPrefix(rule.rawValue + ": \""))
  }

  @Test(
    "A refused subprotocol is named, shortened and in ASCII, with what to send",
    arguments: [
      (
        "v1, eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl=",
        #""eyJhbGciOiJIUzI1NiJ9.eyJ…" has "=", which no token has: encode it, for example as base64url without padding"#
      ),
      ("a@b", #""a@b" has "@", which no token has: encode it, for example as base64url without padding"#),
      (
        "\u{e9}\"\\",
        #""\xc3\xa9\x22\x5c" has "\xc3", which no token has: encode it, for example as base64url "#
          + "without padding"
      ),
      ("a, b,a", #""a" is offered twice"#),
    ])
  func named(value: String, reason: String) throws {
    #expect(
      try upgrade(handshake(adding: ["Sec-WebSocket-Protocol: \(value)"]))
        == .fault(UpgradeRequestError.subprotocols.requestError(reason)))
  }

  @Test(
    "Empty elements of the handshake's lists mean nothing, and the next reader does not see them",
    arguments: [
      (["Sec-WebSocket-Protocol:"], [], []), (["Sec-WebSocket-Protocol: , ,\t"], [], []),
      (["sec-websocket-protocol: ,b,, a ,"], ["b", "a"], ["sec-websocket-protocol: b, a"]),
      (["Sec-WebSocket-Protocol:", "Sec-WebSocket-Protocol: a"], ["a"], ["Sec-WebSocket-Protocol: a"]),
      (["Sec-WebSocket-Extensions:"], [], []),
      (
        ["Sec-WebSocket-Extensions: permessage-deflate,"], [], ["Sec-WebSocket-Extensions: permessage-deflate"]
      ),
      (
        ["Sec-WebSocket-Extensions: ,x; y=\"z\" ,, w"], [], ["Sec-WebSocket-Extensions: x; y=\"z\", w"]
      ),
      (["Sec-WebSocket-Protocol: a" + String(repeating: ",", count: 1000)], ["a"], ["Sec-WebSocket-Protocol: a"]),
      (["X-List: a,,b", "Sec-WebSocket-Protocol: a,"], ["a"], ["X-List: a,,b", "Sec-WebSocket-Protocol: a"]),
    ])
  func emptyElements(lines: [String], subprotocols: [String], kept: [String]) throws {
    let head = try #require(RequestHead.parse(handshake(adding: lines)).head)
    #expect(head.upgrade == .webSocket(UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ==", subprotocols: subprotocols)))
    let expected = try #require(RequestHead.parse(handshake(adding: kept)).head)
    #expect(head.headers == expected.headers)
  }

  @Test("Each rule is broken by a test")
  func complete() {
    #expect(Set(Self.broken.map(\.0)) == Set(UpgradeRequestError.allCases))
    #expect(UpgradeRequestError.version.requestError() == .unsupportedWebSocketVersion)
  }

  @Test(
    "Extension names are read from their list",
    arguments: [
      (["a"], ["a"]), (["a; b; c=d, e;f=\"g\""], ["a", "e"]), (["a", "b , c"], ["a", "b", "c"]), ([], []),
      (["permessage-deflate; client_max_window_bits=\"1\\5\""], ["permessage-deflate"]),
      ([""], []), ([","], []), (["a,"], ["a"]), ([" ,, a;b=c\t,", ""], ["a"]),
    ])
  func extensionNames(values: [String], names: [String]) {
    let headers = HeaderFields(values.map { .init(name: "sec-websocket-extensions", value: $0) })
    #expect(ExtensionList.names(in: headers) == names)
  }

  @Test("Lists have 64 elements at most")
  func mostElements() {
    for (count, isAccepted) in [(64, true), (65, false)] {
      let value = String(repeating: "a, ,", count: count)
      let headers = HeaderFields(
        ["Connection", "Sec-WebSocket-Extensions"].map { .init(name: $0, value: value) })
      #expect((headers.tokens(of: "Connection")?.count == count) == isAccepted)
      #expect((ExtensionList.names(in: headers)?.count == count) == isAccepted)
    }
  }
}
