internal import Transport

/// One side of an open WebSocket without extensions (RFC 6455). Received bytes become actions, and messages to send
/// become frames. It does no I/O and has no timers.
///
/// After its `end` action it does nothing more.
struct WebSocketEndpoint: Sendable {
  enum Role: Sendable {
    /// The peer is a client, which must mask.
    case server
    /// The peer is a server, which must not mask. `maskingKey` returns 32 fresh bits per call that the peer
    /// cannot predict (section 10.3).
    case client(maskingKey: @Sendable () -> UInt32)
  }

  /// How the contents of data frames are delivered.
  enum Delivery: Sendable, Hashable {
    /// Whole messages.
    case messages
    /// The bytes of all messages, one after the other, as soon as they arrive.
    case stream
  }

  enum Action: Sendable, Hashable {
    /// Deliver this message; with `Delivery.messages`.
    case message(WebSocketMessage)
    /// Deliver these bytes; with `Delivery.stream`. Not empty.
    case bytes([UInt8])
    /// The peer sent a Pong with this payload.
    case pong([UInt8])
    /// Write these bytes after all previous ones.
    case write([UInt8])
    /// No more actions follow: close the connection after the pending writes.
    case end(End)
  }

  enum End: Sendable, Hashable {
    /// Both sides have sent a Close frame; this is the peer's.
    case closed(ClosePayload)
    /// The peer violated a rule. It got a Close frame, unless this side had already sent one.
    case fault(WebSocketError)
    /// The connection ended without a Close frame from the peer.
    case lost
  }

  private enum State: Sendable {
    case open
    /// This side has sent a Close frame and waits for the peer's.
    case closing
    case ended
  }

  private let role: Role
  private let delivery: Delivery
  private var state = State.open
  private var frames = FrameReader()
  private var messages: MessageReader
  /// The control frame that is being read. Control frames may come between the fragments of a message.
  private var control: (header: FrameHeader, payload: [UInt8])?

  /// - Parameter maxMessage: The maximum payload bytes of one message. A longer one closes the connection with 1009.
  init(_ role: Role, delivery: Delivery = .messages, maxMessage: Int) {
    self.role = role
    self.delivery = delivery
    messages = MessageReader(limit: maxMessage)
  }

  /// Whether messages and Pings can still be sent.
  var canSend: Bool { if case .open = state { true } else { false } }
}

// MARK: - Receiving

extension WebSocketEndpoint {
  /// Handles bytes from the peer, in pieces of any size.
  ///
  /// Pings are answered. Messages that arrive after this side's Close frame are still delivered, because the peer may
  /// have sent them before it received the Close frame.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) -> [Action] {
    var actions: [Action] = []
    var window = bytes
    read(&window, &actions) { _ in false }
    return actions
  }

  /// Like `receive`, but stops at the end of the first message and removes the bytes it has read from `window`. So
  /// the response to that message is sent before the following frames, possibly a Close, are answered.
  mutating func receiveMessage(_ window: inout UnsafeRawBufferPointer) -> [Action] {
    var actions: [Action] = []
    read(&window, &actions) { if case .message = $0 { true } else { false } }
    return actions
  }

  private mutating func read(
    _ window: inout UnsafeRawBufferPointer, _ actions: inout [Action], until isLast: (Action) -> Bool
  ) {
    do throws(WebSocketError) {
      while !hasEnded, let piece = try nextPiece(&window) {
        try take(piece, &actions)
        if let action = actions.last, isLast(action) { return }
      }
    } catch {
      if canSend { actions.append(.write(frame(.close, ClosePayload(error.closeCode, reason: error.rule).encoded))) }
      end(.fault(error), &actions)
    }
  }

  /// Handles the end of the peer's stream.
  mutating func connectionEnded() -> [Action] {
    var actions: [Action] = []
    if !hasEnded { end(.lost, &actions) }
    return actions
  }

  /// Whether the `end` action was returned.
  var hasEnded: Bool { if case .ended = state { true } else { false } }

  private mutating func end(_ end: End, _ actions: inout [Action]) {
    state = .ended
    actions.append(.end(end))
  }

  private mutating func nextPiece(_ window: inout UnsafeRawBufferPointer) throws(WebSocketError) -> FramePiece? {
    do throws(FrameError) { return try frames.next(&window) } catch { throw .header(error) }
  }

  private mutating func take(_ piece: FramePiece, _ actions: inout [Action]) throws(WebSocketError) {
    switch piece {
    case .begin(let header):
      try checkMask(header)
      if header.opcode.isControl { control = (header, []) } else { try messages.begin(header) }
    case .payload(let bytes, let offset):
      guard control == nil else {
        control?.payload.append(contentsOf: bytes)
        return
      }
      try messages.append(bytes, offset: offset)
      if delivery == .stream { actions.append(.bytes(messages.takeBytes())) }
    case .end:
      if let (header, payload) = control.take() {
        try controlEnded(header, payload, &actions)
      } else if let message = try messages.end(), delivery == .messages {
        actions.append(.message(message))
      }
    }
  }

  private func checkMask(_ header: FrameHeader) throws(WebSocketError) {
    switch role {
    case .server: if header.mask == nil { throw .unmasked }
    case .client: if header.mask != nil { throw .masked }
    }
  }

  private mutating func controlEnded(
    _ header: FrameHeader, _ masked: [UInt8], _ actions: inout [Action]
  ) throws(WebSocketError) {
    var payload = masked
    payload.withUnsafeMutableBytes { header.mask?.apply(to: $0) }
    switch header.opcode {
    case .ping: if canSend { actions.append(.write(frame(.pong, payload))) }
    case .pong: actions.append(.pong(payload))
    case .close: try closeReceived(payload, &actions)
    case .continuation, .text, .binary: break
    }
  }

  private mutating func closeReceived(_ payload: [UInt8], _ actions: inout [Action]) throws(WebSocketError) {
    let close: ClosePayload
    do throws(ClosePayloadError) { close = try ClosePayload(decoding: payload) } catch { throw .close(error) }
    // The response repeats the code (section 5.5.1).
    if canSend { actions.append(.write(frame(.close, ClosePayload(close.code).encoded))) }
    end(.closed(close), &actions)
  }
}

// MARK: - Sending

extension WebSocketEndpoint {
  /// Encodes `message`; empty if this side has sent a Close frame or the connection has ended.
  mutating func send(_ message: WebSocketMessage) -> [UInt8] {
    guard canSend else { return [] }
    switch message {
    case .text(let text): return frame(.text, Array(text.utf8))
    case .binary(let bytes): return frame(.binary, bytes)
    }
  }

  /// Encodes `bytes` as a binary message; empty if nothing can be sent.
  mutating func send(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    canSend ? frame(.binary, bytes) : []
  }

  /// Encodes a Ping; empty if nothing can be sent. `payload` is truncated to 125 bytes.
  mutating func ping(_ payload: [UInt8] = []) -> [UInt8] {
    canSend ? frame(.ping, Array(payload.prefix(FrameHeader.maxControlPayload))) : []
  }

  /// Begins the closing handshake and returns the Close frame, after which this side sends nothing more;
  /// empty if it has begun before.
  ///
  /// - Parameter code: A code that a Close frame may carry. Any other is a mistake of the caller and becomes 1011.
  mutating func close(_ code: CloseCode, reason: String = "") -> [UInt8] {
    guard canSend else { return [] }
    state = .closing
    return frame(.close, ClosePayload(code.maySend ? code : .internalError, reason: reason).encoded)
  }

  private func frame(_ opcode: Opcode, _ payload: some Collection<UInt8>) -> [UInt8] {
    var header = FrameHeader(opcode, payloadLength: payload.count)
    if case .client(let maskingKey) = role { header.mask = MaskingKey(maskingKey()) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(header.length + payload.count)
    header.append(to: &bytes)
    bytes.append(contentsOf: payload)
    bytes.withUnsafeMutableBytes {
      header.mask?.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[header.length...]))
    }
    return bytes
  }
}
