import Transport

@testable import TransportEngine

extension FuzzTarget {
  /// The first byte selects the role and the delivery, the second one where the bytes are cut.
  static let webSocket = FuzzTarget(
    name: "websocket", seeds: { WebSocketInvariants.seeds }, accepts: WebSocketInvariants.check)
}

/// One end of a WebSocket acts the same way however the peer's bytes are cut, and writes complete, valid frames.
enum WebSocketInvariants {
  private static let limit = 1000

  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard input.count >= 2 else { return false }
    let bytes = Array(input.dropFirst(2))
    let isServer = input[0] & 1 == 0
    let delivery: WebSocketEndpoint.Delivery = input[0] & 2 == 0 ? .messages : .stream
    let whole = run([bytes], isServer, delivery)
    let pieces = run(Array(Pieces(of: bytes, pattern: input[1])), isServer, delivery)
    try require(pieces.actions == whole.actions, "pieces give the same result as the whole")
    let isFault = if case .end(.fault) = whole.actions.last { true } else { false }
    // Before a text turns out to be invalid UTF-8, more or less of it may have been delivered.
    try require(isFault || pieces.stream == whole.stream, "pieces give the same stream as the whole")
    try checkActions(whole.actions, isServer: isServer)
    return !isFault && !whole.actions.isEmpty || !whole.stream.isEmpty
  }

  private struct Run {
    var actions: [WebSocketEndpoint.Action] = []
    /// All bytes that were delivered as a stream.
    var stream: [UInt8] = []
  }

  private static func run(_ pieces: [[UInt8]], _ isServer: Bool, _ delivery: WebSocketEndpoint.Delivery) -> Run {
    var endpoint = WebSocketEndpoint(
      isServer ? .server : .client(maskingKey: { 0x1234_5678 }), delivery: delivery, maxMessage: limit)
    var run = Run()
    for piece in pieces {
      for action in piece.withUnsafeBytes({ endpoint.receive($0) }) {
        if case .bytes(let bytes) = action { run.stream += bytes } else { run.actions.append(action) }
      }
    }
    return run
  }

  private static func checkActions(_ actions: [WebSocketEndpoint.Action], isServer: Bool) throws(InvariantViolation) {
    for (index, action) in actions.enumerated() {
      switch action {
      case .message(.text(let text)): try require(text.utf8.count <= limit, "messages are within the limit")
      case .message(.binary(let bytes)): try require(bytes.count <= limit, "messages are within the limit")
      case .bytes: break
      case .pong(let payload): try require(payload.count <= FrameHeader.maxControlPayload, "a Pong is short")
      case .write(let frame): try checkFrame(frame, isServer: isServer)
      case .end: try require(index == actions.count - 1, "no action follows the end")
      }
    }
  }

  private static func checkFrame(_ frame: [UInt8], isServer: Bool) throws(InvariantViolation) {
    guard case .header(let header) = frame.withUnsafeBytes({ FrameHeader.decode($0) }) else {
      throw InvariantViolation(invariant: "written bytes are a frame", detail: "\(frame)")
    }
    try require(header.length + header.payloadLength == frame.count, "a written frame is complete")
    try require((header.mask == nil) == isServer, "only clients mask frames")
    try require(header.opcode == .pong || header.opcode == .close, "an answer is a Pong or a Close")
  }

  static let seeds: [[UInt8]] = {
    let mask: [UInt8] = [1, 2, 3, 4]
    let conversations: [[(UInt8, [UInt8])]] = [
      [(0x81, Array("hello".utf8))], [(0x82, [0, 1, 2])],
      [(0x01, [0xE2]), (0x89, [0x70]), (0x00, [0x82]), (0x80, [0xAC])],
      [(0x8A, [1, 2]), (0x88, [0x03, 0xE8, 0x62])], [(0x88, [])], [(0x81, [0xFF])], [(0x80, [1])],
      [(0x82, [UInt8](repeating: 1, count: 125)), (0x82, [])],
    ]
    var seeds: [[UInt8]] = []
    for frames in conversations {
      var (masked, bare): ([UInt8], [UInt8]) = ([], [])
      for (first, payload) in frames {
        masked += [first, 0x80 | UInt8(payload.count)] + mask
        masked += payload.enumerated().map { $0.element ^ mask[$0.offset % 4] }
        bare += [first, UInt8(payload.count)] + payload
      }
      seeds += [[0, 0] + masked, [2, 5] + masked, [1, 0] + bare, [3, 9] + bare]
    }
    return seeds
  }()
}
