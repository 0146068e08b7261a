internal import Transport

/// The WebSocket of a client channel: messages that wait for a reader, and callers that wait for the network.
struct ClientSocketState {
  private static let queueBound = 1 << 20

  var endpoint: WebSocketEndpoint
  private var queue: [ClientWebSocket.Event] = []
  private var queuedBytes = 0
  private var reader: ClientChannel.Callback<ClientWebSocket.Event>?
  /// Callers that wait until fewer bytes than their bound are queued.
  private var writers: [(bound: Int, done: ClientChannel.Callback<Void>)] = []
  private var pinger: ClientChannel.Callback<Void>?
  private var ending: ClientWebSocket.Ending?
  /// Set when this side sends its Close frame: how long the server may neither read nor answer, and the
  /// unread bytes at the last check.
  var closing: (patience: Duration, unflushed: Int)?

  init(maxMessage: Int) {
    endpoint = WebSocketEndpoint(.client { .random(in: .min ... .max) }, maxMessage: maxMessage)
  }

  /// Whether too many bytes wait to be received; the server is not read meanwhile.
  var isFull: Bool { queuedBytes > Self.queueBound }

  mutating func deliver(_ event: ClientWebSocket.Event) {
    if case .ended(let ending) = event {
      guard self.ending == nil else { return }
      self.ending = ending
    }
    if let reader = reader.take() {
      reader(.success(event))
    } else {
      queue.append(event)
      queuedBytes += event.size
    }
  }

  mutating func take(_ done: @escaping ClientChannel.Callback<ClientWebSocket.Event>) {
    if let event = queue.first {
      queue.removeFirst()
      queuedBytes -= event.size
      done(.success(event))
    } else if let ending {
      done(.success(.ended(ending)))
    } else if reader == nil {
      reader = done
    } else {
      done(.failure(.misused("another receive is in progress")))
    }
  }

  mutating func waitForRoom(_ done: @escaping ClientChannel.Callback<Void>) {
    writers.append((Self.queueBound, done))
  }

  /// Waits until nothing is queued.
  mutating func waitForFlush(_ done: @escaping ClientChannel.Callback<Void>) { writers.append((1, done)) }

  mutating func drained(_ left: Int) {
    let waiting = writers.filter { left < $0.bound }
    guard !waiting.isEmpty else { return }
    writers.removeAll { left < $0.bound }
    for writer in waiting { writer.done(.success(())) }
  }

  mutating func waitForPong(_ done: @escaping ClientChannel.Callback<Void>) -> Bool {
    guard pinger == nil else { return false }
    pinger = done
    return true
  }

  mutating func ponged() { pinger.take()?(.success(())) }

  /// Handles a server that closed its side without a Close frame.
  mutating func peerEnded() {
    deliver(.ended(ClientWebSocket.Ending(code: nil, reason: "the connection was closed without a Close frame")))
  }

  /// Fails all waiting callers: nothing more will be received or sent.
  mutating func lost(_ fault: ClientError) {
    let waiting = writers
    writers = []
    for writer in waiting { writer.done(.failure(fault)) }
    pinger.take()?(.failure(fault))
    deliver(.ended(ClientWebSocket.Ending(code: nil, reason: fault.description)))
  }
}

extension ClientWebSocket.Event {
  fileprivate var size: Int {
    switch self {
    case .message(.text(let text)): text.utf8.count + 64
    case .message(.binary(let bytes)): bytes.count + 64
    case .ended: 0
    }
  }
}

extension ClientChannel {
  func socketReceived(_ bytes: UnsafeRawBufferPointer, in loop: EventLoop) {
    guard bytes.count > 0, let actions = webSocket?.endpoint.receive(bytes) else { return }
    for action in actions {
      switch action {
      case .message(let message): webSocket?.deliver(.message(message))
      case .bytes: break
      case .pong:
        // After a Close frame the deadline belongs to the closing handshake.
        if webSocket?.endpoint.canSend == true { clearDeadline(in: loop) }
        webSocket?.ponged()
      case .write(let bytes): transmit(bytes, in: loop)
      case .end(let end):
        webSocket?.deliver(.ended(end.ending))
        socket.sendEnd(through: loop.buffers)
        setDeadline(after: .seconds(2), in: loop)
      }
    }
  }

  func send(_ message: WebSocketMessage, in loop: EventLoop, _ done: @escaping Callback<Void>) {
    guard phase == .webSocket, let frame = webSocket?.endpoint.send(message), !frame.isEmpty else {
      done(.failure(.lost("the WebSocket is closed")))
      return
    }
    transmit(frame, in: loop)
    webSocket?.waitForRoom(done)
    webSocket?.drained(socket.outbox.count)
  }

  func flush(in loop: EventLoop, _ done: @escaping Callback<Void>) {
    guard phase == .webSocket else {
      done(.failure(.lost("the WebSocket is closed")))
      return
    }
    webSocket?.waitForFlush(done)
    webSocket?.drained(socket.outbox.count)
  }

  func receive(in loop: EventLoop, _ done: @escaping Callback<ClientWebSocket.Event>) {
    guard webSocket != nil else {
      done(.failure(.misused("the connection is not a WebSocket")))
      return
    }
    webSocket?.take(done)
    if phase == .webSocket { update(in: loop) }
  }

  func ping(timeout: Duration, in loop: EventLoop, _ done: @escaping Callback<Void>) {
    guard phase == .webSocket, webSocket?.waitForPong(done) == true,
      let frame = webSocket?.endpoint.ping(Array("ping".utf8))
    else {
      done(.failure(.misused("the WebSocket is closed, or a Ping is in progress")))
      return
    }
    setDeadline(after: timeout, in: loop)
    transmit(frame, in: loop)
  }

  func closeWebSocket(_ code: CloseCode, reason: String, patience: Duration, in loop: EventLoop) {
    guard phase == .webSocket, let frame = webSocket?.endpoint.close(code, reason: reason), !frame.isEmpty else {
      return
    }
    transmit(frame, in: loop)
    guard phase == .webSocket else { return }
    webSocket?.closing = (patience, socket.waiting)
    setDeadline(after: patience, in: loop)
  }

  /// Returns whether the server has read anything since the last check. If so, it gets the same time again to answer
  /// the Close frame, which it can read only after everything before.
  func isStillFlushing(in loop: EventLoop) -> Bool {
    guard phase == .webSocket, let (patience, before) = webSocket?.closing, webSocket?.endpoint.hasEnded == false else {
      return false
    }
    let left = socket.waiting
    guard left < before else { return false }
    webSocket?.closing = (patience, left)
    setDeadline(after: patience, in: loop)
    return true
  }
}

extension WebSocketEndpoint.End {
  fileprivate var ending: ClientWebSocket.Ending {
    switch self {
    case .closed(let close): ClientWebSocket.Ending(code: close.code?.rawValue, reason: close.reason)
    case .fault(let fault): ClientWebSocket.Ending(code: nil, reason: "the server broke the protocol: \(fault.rule)")
    case .lost: ClientWebSocket.Ending(code: nil, reason: "the connection was closed without a Close frame")
    }
  }
}
