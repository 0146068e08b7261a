import Locking
import Testing
import Transport

@testable import TransportEngine

private typealias Action = WebSocketEndpoint.Action

private func server(_ delivery: WebSocketEndpoint.Delivery = .messages, maxMessage: Int = 1000) -> WebSocketEndpoint {
  WebSocketEndpoint(.server, delivery: delivery, maxMessage: maxMessage)
}

private func client() -> WebSocketEndpoint {
  WebSocketEndpoint(.client(maskingKey: { exampleKey.rawValue }), maxMessage: 1000)
}

/// Returns all actions for `bytes`, fed in pieces of `size`.
private func actions(_ bytes: [UInt8], size: Int, at endpoint: WebSocketEndpoint) -> [Action] {
  var endpoint = endpoint
  return stride(from: 0, to: bytes.count, by: size).flatMap {
    endpoint.receive(Array(bytes[$0..<min($0 + size, bytes.count)]))
  }
}

/// Returns the actions of an endpoint after a fault: a Close frame and the end.
private func refusal(_ fault: WebSocketError, masked: Bool = false) -> [Action] {
  let payload = closePayload(fault.closeCode.rawValue, fault.rule)
  return [.write(frame(0x88, payload, masked: masked)), .end(.fault(fault))]
}

@Suite struct WebSocketReceivingTests {
  static let conversations: [(bytes: [UInt8], actions: [WebSocketEndpoint.Action])] = [
    (frame(0x81, "Hello"), [.message(.text("Hello"))]),
    (frame(0x82, [0, 1, 2]), [.message(.binary([0, 1, 2]))]),
    (frame(0x81) + frame(0x82), [.message(.text("")), .message(.binary([]))]),
    (frame(0x01, "Hel") + frame(0x80, "lo"), [.message(.text("Hello"))]),
    (frame(0x01) + frame(0x00) + frame(0x00, "a") + frame(0x80), [.message(.text("a"))]),
    (
      frame(0x01, "Hel") + frame(0x89, "p") + frame(0x8A, "q") + frame(0x80, "lo"),
      [.write(frame(0x8A, "p", masked: false)), .pong(Array("q".utf8)), .message(.text("Hello"))]
    ),
    (frame(0x89), [.write([0x8A, 0x00])]),
    (frame(0x01, [0xE2]) + frame(0x00, [0x82]) + frame(0x80, [0xAC]), [.message(.text("\u{20AC}"))]),
    (
      frame(0x82, [UInt8](repeating: 7, count: 126)) + frame(0x82, [UInt8](repeating: 8, count: 1000)),
      [.message(.binary([UInt8](repeating: 7, count: 126))), .message(.binary([UInt8](repeating: 8, count: 1000)))]
    ),
    (
      frame(0x88, closePayload(1000, "bye")),
      [.write([0x88, 0x02, 0x03, 0xE8]), .end(.closed(ClosePayload(.normal, reason: "bye")))]
    ),
    (frame(0x88), [.write([0x88, 0x00]), .end(.closed(ClosePayload(nil)))]),
    (
      frame(0x01, "cut") + frame(0x88, closePayload(4999)) + frame(0x81, "unheard"),
      [.write([0x88, 0x02, 0x13, 0x87]), .end(.closed(ClosePayload(CloseCode(4999))))]
    ),
  ]

  @Test("The actions do not depend on how the bytes are cut", arguments: conversations.indices)
  func conversation(index: Int) {
    let (bytes, expected) = Self.conversations[index]
    for size in [1, 2, 3, 5, 7, 13, 14, 15, 64, bytes.count] {
      #expect(actions(bytes, size: size, at: server()) == expected)
    }
  }

  static let faults: [(WebSocketError, [UInt8])] =
    [
      (.unmasked, frame(0x81, "Hello", masked: false)), (.unmasked, [0x89, 0x00]), (.unmasked, [0x88, 0x00]),
      (.strayContinuation, frame(0x80, "x")), (.strayContinuation, frame(0x00)),
      (.strayContinuation, frame(0x80)),
      (.interruptedMessage, frame(0x01, "a") + frame(0x81, "b")), (.interruptedMessage, frame(0x02) + frame(0x02)),
      (.interruptedMessage, frame(0x01, "a") + frame(0x89) + frame(0x82)),
      (.notUTF8, frame(0x81, [0xC3, 0x28])), (.notUTF8, frame(0x81, [0xC3])), (.notUTF8, frame(0x01, [0xFF])),
      (.notUTF8, frame(0x01, [0xE2, 0x82]) + frame(0x80)), (.notUTF8, frame(0x81, [0xED, 0xA0, 0x80])),
      (.notUTF8, frame(0x01, [0xE2]) + frame(0x80, [0x28])),
      (.tooBig(limit: 1000), frame(0x82, [UInt8](repeating: 0, count: 1001))),
      (.tooBig(limit: 1000), [0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4]),
      (
        .tooBig(limit: 1000),
        frame(0x02, [UInt8](repeating: 0, count: 600)) + frame(0x80, [UInt8](repeating: 0, count: 401))
      ),
      (.close(.length), frame(0x88, [3])), (.close(.code), frame(0x88, closePayload(1006))),
      (.close(.reason), frame(0x88, closePayload(1000) + [0xFF])),
    ] + FrameHeaderTests.broken.map { (.header($0.0), $0.1) }

  @Test("A broken rule is reported to the peer with its code and closes the WebSocket", arguments: faults)
  func fault(fault: WebSocketError, bytes: [UInt8]) {
    for size in [1, 3, bytes.count + 100] {
      let log = actions(bytes + frame(0x81, "unheard"), size: size, at: server())
      let expected = refusal(fault)
      #expect(Array(log.suffix(2)) == expected)
      #expect(log.count { if case .end = $0 { true } else { false } } == 1)
      #expect(!log.contains(.message(.text("unheard"))))
    }
  }

  @Test("A message that is too big is refused by its header, before any of it is buffered")
  func tooBigEarly() {
    var endpoint = server()
    let header = Array(frame(0x82, [UInt8](repeating: 0, count: 1001)).prefix(8))
    #expect(endpoint.receive(header) == refusal(.tooBig(limit: 1000)))
  }

  @Test("The limit applies to one message, not to the connection")
  func boundPerMessage() {
    let message = [UInt8](repeating: 1, count: 1000)
    let log = actions(frame(0x82, message) + frame(0x82, message), size: 100, at: server())
    #expect(log == [.message(.binary(message)), .message(.binary(message))])
  }

  @Test("The client refuses a masked frame of a server")
  func maskedByServer() {
    var endpoint = client()
    #expect(endpoint.receive(frame(0x81, "Hello")) == refusal(.masked, masked: true))
    var other = client()
    #expect(other.receive(frame(0x81, "Hello", masked: false)) == [.message(.text("Hello"))])
  }

  @Test("A connection that is closed without a Close frame is lost, once")
  func lost() {
    var endpoint = server()
    _ = endpoint.receive(Array(frame(0x81, "Hello").dropLast()))
    #expect(endpoint.connectionEnded() == [.end(.lost)])
    #expect(endpoint.connectionEnded() == [])
    #expect(endpoint.receive(frame(0x81, "Hello")) == [])
    #expect(endpoint.send(.text("x")) == [] && endpoint.ping() == [] && endpoint.close(.normal) == [])
  }
}

@Suite struct WebSocketStreamTests {
  @Test("A stream delivers the bytes of all messages in order and without delay")
  func stream() {
    let bytes =
      frame(0x02, "ab") + frame(0x89) + frame(0x80, "cd") + frame(0x81, "\u{e9}") + frame(0x82) + frame(0x82, "e")
    for size in [1, 2, 5, bytes.count] {
      let log = actions(bytes, size: size, at: server(.stream))
      let delivered = log.flatMap { action -> [UInt8] in
        if case .bytes(let bytes) = action { bytes } else { [] }
      }
      #expect(delivered == Array("abcd\u{e9}e".utf8))
      #expect(log.filter { $0 == .write([0x8A, 0x00]) }.count == 1)
      #expect(!log.contains(.bytes([])))
    }
    var endpoint = server(.stream)
    #expect(endpoint.receive(Array(frame(0x82, "abc").dropLast())) == [.bytes(Array("ab".utf8))])
  }

  @Test("Text in a stream must be UTF-8, and messages are limited")
  func faults() {
    var endpoint = server(.stream)
    #expect(endpoint.receive(frame(0x81, [0xFF])) == refusal(.notUTF8))
    var other = server(.stream, maxMessage: 2)
    #expect(other.receive(frame(0x82, [1, 2])) == [.bytes([1, 2])])
    #expect(other.receive(frame(0x82, [1, 2, 3])) == refusal(.tooBig(limit: 2)))
  }
}

@Suite struct WebSocketSendingTests {
  @Test("A server's frames are not masked")
  func server() {
    var endpoint = WebSocketEndpoint(.server, maxMessage: 10)
    #expect(endpoint.send(.text("Hello")) == [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
    #expect(endpoint.send(.binary([1, 2])) == [0x82, 0x02, 1, 2])
    #expect(
      [1, 2].withUnsafeBytes { endpoint.send(UnsafeRawBufferPointer(rebasing: $0.prefix(1))) } == [0x82, 0x01, 1])
    #expect(endpoint.ping(Array("Hello".utf8)) == [0x89, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
    #expect(endpoint.ping() == [0x89, 0x00])
    #expect(endpoint.ping([UInt8](repeating: 1, count: 200)).count == 127)
  }

  @Test("A client's frames are masked, with the bytes of RFC 6455 section 5.7")
  func client() {
    var endpoint = WebSocketEndpoint(.client(maskingKey: { exampleKey.rawValue }), maxMessage: 10)
    #expect(
      endpoint.send(.text("Hello")) == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    #expect(endpoint.receive([0x89, 0x01, 0x41]) == [.write(frame(0x8A, "A"))])
  }

  @Test("Each frame of a client has its own key")
  func freshKeys() {
    let keys = KeySequence()
    var endpoint = WebSocketEndpoint(.client(maskingKey: { keys.next() }), maxMessage: 10)
    #expect(endpoint.ping() != endpoint.ping())
  }

  @Test("Each end receives what the other end sends", arguments: [0, 1, 125, 126, 65535, 65536, 200_000])
  func bothDirections(count: Int) {
    let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }
    var near = WebSocketEndpoint(.client(maskingKey: { 0xDEAD_BEEF }), maxMessage: 1 << 20)
    var far = WebSocketEndpoint(.server, maxMessage: 1 << 20)
    #expect(far.receive(near.send(.binary(payload))) == [.message(.binary(payload))])
    #expect(near.receive(far.send(.binary(payload))) == [.message(.binary(payload))])
  }
}

@Suite struct WebSocketClosingTests {
  @Test("The side that closes sends no more frames, receives pending messages, and is closed by the answer")
  func closing() {
    var endpoint = server()
    #expect(endpoint.close(.goingAway, reason: "drain") == frame(0x88, closePayload(1001, "drain"), masked: false))
    #expect(!endpoint.canSend)
    #expect(endpoint.close(.normal) == [] && endpoint.send(.text("x")) == [] && endpoint.ping() == [])
    #expect(endpoint.receive(frame(0x89) + frame(0x81, "late")) == [.message(.text("late"))])
    #expect(endpoint.receive(frame(0x88, closePayload(1001))) == [.end(.closed(ClosePayload(.goingAway)))])
    #expect(endpoint.receive(frame(0x81, "later")) == [])
    #expect(endpoint.connectionEnded() == [])
  }

  @Test("A violation closes a closing WebSocket without a second Close frame")
  func faultWhileClosing() {
    var endpoint = server()
    _ = endpoint.close(.normal)
    #expect(endpoint.receive(frame(0x80)) == [.end(.fault(.strayContinuation))])
  }

  @Test("A closing WebSocket whose peer disappears is lost")
  func lostWhileClosing() {
    var endpoint = server()
    _ = endpoint.close(.normal)
    #expect(endpoint.connectionEnded() == [.end(.lost)])
  }

  @Test(
    "A code that must not be sent is replaced by 1011",
    arguments: [0, 999, 1004, 1005, 1006, 1015, 2999, 5000] as [UInt16])
  func unsendable(code: UInt16) {
    var endpoint = server()
    #expect(endpoint.close(CloseCode(code)) == [0x88, 0x02, 0x03, 0xF3])
  }

  @Test("Two ends close each other")
  func bothEnds() {
    var near = client()
    var far = server()
    let answer = far.receive(near.close(.normal, reason: "done"))
    #expect(answer.last == .end(.closed(ClosePayload(.normal, reason: "done"))))
    guard case .write(let bytes)? = answer.first else {
      Issue.record("no answer")
      return
    }
    #expect(near.receive(bytes) == [.end(.closed(ClosePayload(.normal)))])
  }
}

/// Counts up from 1.
private final class KeySequence: Sendable {
  private let state = LockedValue(UInt32(0))

  func next() -> UInt32 {
    state.withLock {
      $0 += 1
      return $0
    }
  }
}
