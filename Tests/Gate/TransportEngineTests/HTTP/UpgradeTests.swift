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
    "Without Upgrade and its option in Connection there is no upgrade",
    arguments: [
      request(), handshake(replacing: [("Connection", nil)]), handshake(replacing: [("Connection", "keep-alive")]),
      handshake(replacing: [("Upgrade", nil)]), handshake("POST / HTTP/1.1", replacing: [("Upgrade", nil)]),
    ])
  func nothing(text: String) throws {
    #expect(try upgrade(text) == .none)
  }

  static let broken: [(UpgradeRequestError, String)] =
    ["h2c", "websocket, h2c", "h2c, websocket", "websocket/13", "", "web socket", "xwebsocket"].map {
      (.proto, handshake(replacing: [("Upgrade", $0)]))
    } + [
      (.proto, handshake(adding: ["Upgrade: websocket"])),
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
    + ["", ",", "a, a", "a b", "a;b", "\"a\"", "\u{e9}"].map {
      (.subprotocols, handshake(adding: ["Sec-WebSocket-Protocol: \($0)"]))
    }
    + ["", ",", "a,", "a;", "a; b=", "a; b=\"\"", "a; b=\"c", "a; b=\"c d\"", "a b", "a=b", "a; =b", "a; b=c d"].map {
      (.extensions, handshake(adding: ["Sec-WebSocket-Extensions: \($0)"]))
    }

  @Test("A handshake that breaks one rule is refused with that rule", arguments: UpgradeTests.broken)
  func refused(rule: UpgradeRequestError, text: String) throws {
    #expect(try upgrade(text) == .fault(rule.requestError))
  }

  @Test("Each rule is broken by a test")
  func complete() {
    #expect(Set(Self.broken.map(\.0)) == Set(UpgradeRequestError.allCases))
    #expect(UpgradeRequestError.version.requestError == .unsupportedWebSocketVersion)
  }

  @Test(
    "Extension names are read from their list",
    arguments: [
      (["a"], ["a"]), (["a; b; c=d, e;f=\"g\""], ["a", "e"]), (["a", "b , c"], ["a", "b", "c"]), ([], []),
      (["permessage-deflate; client_max_window_bits=\"1\\5\""], ["permessage-deflate"]),
    ])
  func extensionNames(values: [String], names: [String]) {
    let headers = HeaderFields(values.map { .init(name: "sec-websocket-extensions", value: $0) })
    #expect(ExtensionList.names(in: headers) == names)
  }
}
