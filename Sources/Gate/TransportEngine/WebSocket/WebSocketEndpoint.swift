internal import Transport

/// One end of an open WebSocket without extensions (RFC 6455): what arrives becomes actions, what is to be said becomes
/// frames. It does no IO and knows no time.
///
/// After its `end` action it does nothing more, whatever is called.
struct WebSocketEndpoint: Sendable {
  enum Role: Sendable {
    /// The peer is a client, which must mask.
    case server
    /// The peer is a server, which must not. `maskingKey` gives 32 bits that the peer cannot foresee, at each call
    /// others (section 10.3).
    case client(maskingKey: @Sendable () -> UInt32)
  }

  /// What is made of data frames.
  enum Delivery: Sendable, Hashable {
    /// Whole messages.
    case messages
    /// Their bytes, one message behind the other, as soon as they come.
    case stream
  }

  enum Action: Sendable, Hashable {
    /// Hand this on; with `Delivery.messages`.
    case message(WebSocketMessage)
    /// Hand these on; with `Delivery.stream`. Not empty.
    case bytes([UInt8])
    /// The peer sent a Pong with this payload.
    case pong([UInt8])
    /// Write these bytes behind what has been written before.
    case write([UInt8])
    /// There will be no more actions: close the connection behind what is to be written.
    case end(End)
  }

  enum End: Sendable, Hashable {
    /// Both sides have sent a Close frame; this is the peer's.
    case closed(ClosePayload)
    /// The peer broke a rule, and has been told so unless a Close frame had gone before.
    case fault(WebSocketFault)
    /// The connection ended without a Close frame from the peer.
    case lost
  }

  private enum State: Sendable {
    case open
    /// A Close frame has been sent; the peer's is awaited.
    case closing
    case ended
  }

  private let role: Role
  private let delivery: Delivery
  private var state = State.open
  private var frames = FrameReader()
  private var messages: MessageReader
  /// The control frame that is being read: they come between the fragments of a message.
  private var control: (header: FrameHeader, payload: [UInt8])?

  /// - Parameter maxMessage: payload bytes of one message; a longer one ends the connection with 1009.
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
  /// The peer has sent `bytes`, in pieces of any size.
  ///
  /// Pings are answered. Data that arrive after this side's Close frame are still delivered, since they were sent
  /// before the peer could know.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) -> [Action] {
    var actions: [Action] = []
    var window = bytes
    read(&window, &actions) { _ in false }
    return actions
  }

  /// Like `receive`, but goes no further than the end of the first message, and takes off `window` what it has read: so
  /// what is said to that message can go out before what came behind it, a Close perhaps, is answered.
  mutating func receiveMessage(_ window: inout UnsafeRawBufferPointer) -> [Action] {
    var actions: [Action] = []
    read(&window, &actions) { if case .message = $0 { true } else { false } }
    return actions
  }

  private mutating func read(
    _ window: inout UnsafeRawBufferPointer, _ actions: inout [Action], until isLast: (Action) -> Bool
  ) {
    do throws(WebSocketFault) {
      while !hasEnded, let piece = try nextPiece(&window) {
        try take(piece, &actions)
        if let action = actions.last, isLast(action) { return }
      }
    } catch {
      if canSend { actions.append(.write(frame(.close, ClosePayload(error.closeCode, reason: error.rule).encoded))) }
      end(.fault(error), &actions)
    }
  }

  /// The peer's end of the connection is closed: it will send nothing more.
  mutating func connectionEnded() -> [Action] {
    var actions: [Action] = []
    if !hasEnded { end(.lost, &actions) }
    return actions
  }

  /// Whether its `end` action was given.
  var hasEnded: Bool { if case .ended = state { true } else { false } }

  private mutating func end(_ end: End, _ actions: inout [Action]) {
    state = .ended
    actions.append(.end(end))
  }

  private mutating func nextPiece(_ window: inout UnsafeRawBufferPointer) throws(WebSocketFault) -> FramePiece? {
    do throws(FrameFault) { return try frames.next(&window) } catch { throw .header(error) }
  }

  private mutating func take(_ piece: FramePiece, _ actions: inout [Action]) throws(WebSocketFault) {
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

  private func checkMask(_ header: FrameHeader) throws(WebSocketFault) {
    switch role {
    case .server: if header.mask == nil { throw .unmasked }
    case .client: if header.mask != nil { throw .masked }
    }
  }

  private mutating func controlEnded(
    _ header: FrameHeader, _ masked: [UInt8], _ actions: inout [Action]
  ) throws(WebSocketFault) {
    var payload = masked
    payload.withUnsafeMutableBytes { header.mask?.apply(to: $0) }
    switch header.opcode {
    case .ping: if canSend { actions.append(.write(frame(.pong, payload))) }
    case .pong: actions.append(.pong(payload))
    case .close: try closeReceived(payload, &actions)
    case .continuation, .text, .binary: break
    }
  }

  private mutating func closeReceived(_ payload: [UInt8], _ actions: inout [Action]) throws(WebSocketFault) {
    let close: ClosePayload
    do throws(ClosePayloadFault) { close = try ClosePayload(decoding: payload) } catch { throw .close(error) }
    // The answer repeats the code (section 5.5.1).
    if canSend { actions.append(.write(frame(.close, ClosePayload(close.code).encoded))) }
    end(.closed(close), &actions)
  }
}

// MARK: - Sending

extension WebSocketEndpoint {
  /// The frame for `message`; empty if this side has sent a Close frame or the connection has ended.
  mutating func send(_ message: WebSocketMessage) -> [UInt8] {
    guard canSend else { return [] }
    switch message {
    case .text(let text): return frame(.text, Array(text.utf8))
    case .binary(let bytes): return frame(.binary, bytes)
    }
  }

  /// The frame of a binary message of `bytes`; empty if nothing can be sent.
  mutating func send(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    canSend ? frame(.binary, bytes) : []
  }

  /// A Ping; empty if nothing can be sent. `payload` has at most 125 bytes: more are cut off.
  mutating func ping(_ payload: [UInt8] = []) -> [UInt8] {
    canSend ? frame(.ping, Array(payload.prefix(FrameHeader.maxControlPayload))) : []
  }

  /// Begins the closing handshake: a Close frame, behind which this side sends nothing more; empty if it was begun
  /// before.
  ///
  /// - Parameter code: one that a Close frame may carry; with any other the frame says 1011, for its maker erred.
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
