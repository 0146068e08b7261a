internal import Glibc
internal import Transport

/// A WebSocket that terminates in the gate: for an upstream that speaks plain bytes, or for a
/// WebSocket service of this process.
final class Endpoint {
  var socket: WebSocketEndpoint
  /// The WebSocket service; `nil` if the other peer is an upstream.
  let conversation: (any WebSocketSession)?
  /// The bytes after a message that the service is still handling.
  var unread: ArraySlice<UInt8> = []
  /// Whether the WebSocket has ended, so that only the sockets remain to be closed.
  var isOver = false
  private var ending: (code: UInt16?, reason: String) = (nil, "")

  init(socket: WebSocketEndpoint, conversation: (any WebSocketSession)?) {
    self.socket = socket
    self.conversation = conversation
  }

  func noteEnd(_ end: WebSocketEndpoint.End) {
    isOver = true
    switch end {
    case .closed(let close): ending = (close.code?.rawValue, close.reason)
    case .fault(let fault): ending = (nil, fault.rule)
    case .lost: ending = (nil, "the connection was closed without a Close frame")
    }
  }

  /// Reports the closed connection to the service.
  func finished() { conversation?.closed(code: ending.code, reason: ending.reason) }
}

extension EventLoop {
  // MARK: Opening

  /// Opens a bridge to a TCP service that is connected: the gate itself sends the client its 101.
  func openBridge(_ session: SessionRef) {
    guard let plan = session.pointee.plan, let http = session.pointee.http, let intent = http.request.upgrade,
      isStillPermitted(session)
    else { return }
    let own = plan.ownSubprotocols
    let offered = own.isEmpty ? intent.subprotocols : intent.subprotocols.filter { !own.contains($0) }
    let subprotocol = Self.subprotocol(of: offered, wanted: plan.subprotocol) ?? own.first
    session.pointee.endpoint = Endpoint(
      socket: WebSocketEndpoint(.server, delivery: .stream, maxMessage: plan.limits.maxMessage), conversation: nil)
    session.pointee.phase = .bridge
    greet(session, intent, subprotocol, plan.answerFields(from: HeaderFields()))
    begin(session, plan)
    resume(session, http)
  }

  /// Returns the subprotocol of a bridge; `nil` for none. A browser closes a socket whose 101 names none if it offered
  /// any.
  ///
  /// - Parameter wanted: The one subprotocol of the service; `nil` if it is not known. Then `binary` is what a bridge
  ///   does, and clients that offer something else speak the protocol of the service, as those of MQTT do. `base64`,
  ///   which old clients of bridges offer, would need a translation.
  private static func subprotocol(of offered: [String], wanted: String?) -> String? {
    if let wanted { return offered.contains(wanted) ? wanted : nil }
    return offered.contains("binary") ? "binary" : offered.first { $0 != "base64" }
  }

  func openConversation(_ session: SessionRef, _ http: HTTPConnection, _ conversation: any WebSocketSession) {
    guard let intent = http.request.upgrade else { return }
    session.pointee.endpoint = Endpoint(
      socket: WebSocketEndpoint(.server, maxMessage: conversation.maxMessage), conversation: conversation)
    session.pointee.phase = .conversation
    session.pointee.bounds = RelayBounds(SessionLimits(maxAge: nil), now: now)
    session.pointee.pingToken = random.next()
    session.pointee.ends.pointee.socket.lastHeard = now
    greet(session, intent, conversation.subprotocol, HeaderFields())
    let token = session.pointee.token
    conversation.opened(
      // Weak, as in `begin`.
      WebSocketChannel(
        send: { [weak self] message in
          self?.execute { loop in
            guard let session = loop.slots.session(token), let endpoint = session.pointee.endpoint else { return }
            loop.sendToClient(session, endpoint.socket.send(message))
            loop.settleEndpoint(session)
          }
        },
        close: { [weak self] code, reason in
          self?.execute { loop in
            guard let session = loop.slots.session(token) else { return }
            loop.closeEndpoint(session, code, reason: reason)
          }
        }))
    resume(session, http)
  }

  private func greet(_ session: SessionRef, _ intent: UpgradeIntent, _ subprotocol: String?, _ fields: HeaderFields) {
    // Only the responder's fields can be invalid; the 101 is then sent without them.
    let accept = HandshakeKey.accept(for: intent.key)
    let head =
      (try? ResponseWriter.switchingProtocols(accept: accept, subprotocol: subprotocol, fields: fields))
      ?? (try? ResponseWriter.switchingProtocols(accept: accept)) ?? []
    sendToClient(session, head)
  }

  private func resume(_ session: SessionRef, _ http: HTTPConnection) {
    let early = http.inbox
    session.pointee.http = nil
    early.withUnsafeBytes { messagesArrived(session, $0) }
    let token = session.pointee.token
    settleEndpoint(session)
    guard slots.session(token) != nil else { return }
    endpointTimer(session)
    if slots.session(token) != nil { closeIfDraining(session) }
  }

  // MARK: Traffic

  func endpointReadable(_ session: SessionRef, _ side: Side) {
    let end = session.pointee.ends + side.index
    guard end.pointee.socket.isOpen else { return }
    let reception = end.pointee.socket.receive(into: plain.start, through: buffers)
    if reception.count > 0 {
      end.pointee.socket.lastHeard = now
      let bytes = UnsafeRawBufferPointer(start: plain.start, count: reception.count)
      switch side {
      case .client:
        messagesArrived(session, bytes)
      case .upstream:
        guard let frame = session.pointee.endpoint?.socket.send(bytes), !frame.isEmpty else { break }
        end.pointee.bytes &+= UInt64(bytes.count)
        sendToClient(session, frame)
      }
    }
    settleEndpoint(session)
  }

  private func messagesArrived(_ session: SessionRef, _ bytes: UnsafeRawBufferPointer) {
    guard bytes.count > 0, let endpoint = session.pointee.endpoint else { return }
    guard endpoint.conversation != nil else {
      carryOut(endpoint.socket.receive(bytes), for: session, endpoint)
      return
    }
    let isReading = !endpoint.unread.isEmpty
    endpoint.unread += bytes
    if !isReading { readMessage(session, endpoint) }
  }

  /// Reads up to the next message. The service's response is in the mailbox before the rest is read.
  private func readMessage(_ session: SessionRef, _ endpoint: Endpoint) {
    let (actions, rest) = endpoint.unread.withUnsafeBytes { bytes in
      var rest = bytes
      return (endpoint.socket.receiveMessage(&rest), rest.count)
    }
    endpoint.unread = endpoint.unread.suffix(rest)
    if endpoint.unread.isEmpty { endpoint.unread = [] }
    for action in actions { carryOut(action, for: session, endpoint) }
    if endpoint.isOver { endpoint.unread = [] }
    guard !endpoint.unread.isEmpty else { return }
    let token = session.pointee.token
    execute { loop in
      guard let session = loop.slots.session(token), let endpoint = session.pointee.endpoint else { return }
      loop.readMessage(session, endpoint)
      loop.settleEndpoint(session)
    }
  }

  /// Handles the actions of one reception with one write to the service and one to the client: a client that sends
  /// many small frames at once must not cost a write for each.
  private func carryOut(_ actions: [WebSocketEndpoint.Action], for session: SessionRef, _ endpoint: Endpoint) {
    guard actions.count > 1 else {
      for action in actions { carryOut(action, for: session, endpoint) }
      return
    }
    var payload: [UInt8] = []
    var answers: [UInt8] = []
    var others: [WebSocketEndpoint.Action] = []
    for action in actions {
      switch action {
      case .bytes(let bytes): payload += bytes
      case .write(let frame): answers += frame
      case .message, .pong, .end: others.append(action)
      }
    }
    if !payload.isEmpty { carryOut(.bytes(payload), for: session, endpoint) }
    if !answers.isEmpty { carryOut(.write(answers), for: session, endpoint) }
    // The end comes after all other actions.
    for action in others { carryOut(action, for: session, endpoint) }
  }

  private func carryOut(_ action: WebSocketEndpoint.Action, for session: SessionRef, _ endpoint: Endpoint) {
    switch action {
    case .message(let message): endpoint.conversation?.received(message)
    case .bytes(let payload):
      session.pointee.ends.pointee.bytes &+= UInt64(payload.count)
      guard session.pointee.ends[1].socket.isOpen else { return }
      payload.withUnsafeBytes { session.pointee.ends[1].socket.send($0, through: buffers) }
    case .pong: break
    case .write(let frame): sendToClient(session, frame)
    case .end(let end): endpointEnded(session, endpoint, end)
    }
  }

  private func endpointEnded(_ session: SessionRef, _ endpoint: Endpoint, _ end: WebSocketEndpoint.End) {
    endpoint.noteEnd(end)
    if case .fault = end { session.pointee.isClosedByGate = true }
    if session.pointee.end == nil {
      switch end {
      case .closed(let close): session.pointee.end = .closed(by: .client, code: close.code?.rawValue)
      case .fault(let fault): session.pointee.end = .closedByGate(fault.closeCode.rawValue, reason: fault.rule)
      case .lost: session.pointee.end = .lost(.client, "the connection was closed")
      }
    }
    session.pointee.ends[0].socket.sendEnd(through: buffers)
    session.pointee.ends[1].socket.sendEnd(through: buffers)
    limitPatience(session, to: closePatience)
  }

  // MARK: Closing

  func closeEndpoint(_ session: SessionRef, _ code: CloseCode, reason: String) {
    guard let endpoint = session.pointee.endpoint else { return }
    // Also while a close is in progress, as in `close`.
    limitPatience(session, to: patience.duration(with: code, at: now))
    session.pointee.isClosedByGate = true
    guard endpoint.socket.canSend else { return }
    if session.pointee.end == nil { session.pointee.end = .closedByGate(code.rawValue, reason: reason) }
    sendToClient(session, endpoint.socket.close(code, reason: reason))
    session.pointee.ends[1].socket.sendEnd(through: buffers)
    settleEndpoint(session)
  }

  /// Runs after every event: passes on the end of a stream, stops or resumes reading, and ends the session
  /// when both peers are finished.
  func settleEndpoint(_ session: SessionRef) {
    guard let endpoint = session.pointee.endpoint else { return }
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    for index in 0..<2 where session.pointee.ends[index].socket.readsOn() { watchReset(session) }
    let clientIsGone =
      !client.pointee.socket.isOpen || client.pointee.socket.failure != nil || client.pointee.socket.hasEnded
    // What the client sent before it closed is handled first.
    let isRead = endpoint.unread.isEmpty || client.pointee.socket.failure != nil
    if clientIsGone && !endpoint.isOver && isRead {
      for case .end(let end) in endpoint.socket.connectionEnded() { endpointEnded(session, endpoint, end) }
    }
    if upstream.pointee.socket.isOpen, upstream.pointee.socket.failure != nil || upstream.pointee.socket.hasEnded {
      upstreamLeft(session, endpoint)
    }
    if client.pointee.socket.failure != nil {
      // epoll would otherwise report the failure again and again.
      setInterest(session, .client, 0)
      client.pointee.socket.close()
    }
    if clientIsGone && isRead {
      if client.pointee.socket.outbox.isEmpty && upstream.pointee.socket.isFinished {
        destroy(session)
        return
      }
      // The service still gets the client's remaining bytes, but only within the close timeout.
      limitPatience(session, to: service?.limits.closeTimeout ?? EngineLimits().closeTimeout)
    }
    let holdsBack = endpoint.conversation == nil ? upstream : client
    updateRelayInterest(
      session, .client, reads: holdsBack.pointee.socket.outbox.isEmpty && endpoint.unread.isEmpty)
    updateInterest(session, .upstream, reads: client.pointee.socket.outbox.isEmpty)
  }

  private func upstreamLeft(_ session: SessionRef, _ endpoint: Endpoint) {
    let upstream = session.pointee.ends + 1
    let isOrderly = upstream.pointee.socket.failure == nil
    if session.pointee.end == nil {
      session.pointee.end = .lost(.upstream, upstream.pointee.socket.failure ?? "the connection was closed")
    }
    setInterest(session, .upstream, 0)
    upstream.pointee.socket.close()
    let close = endpoint.socket.close(
      isOrderly ? .normal : .badGateway, reason: "the service behind the gate closed the connection")
    sendToClient(session, close)
    limitPatience(session, to: closePatience)
  }

  func endpointTimer(_ session: SessionRef) {
    guard let endpoint = session.pointee.endpoint else { return }
    if let deadline = session.pointee.closeDeadline {
      closeTimer(session, deadline)
      return
    }
    let client = session.pointee.ends
    let age = session.pointee.bounds.ageDeadline
    let silence = silence(of: .client, in: session)
    let decision = silence.decision(at: now)
    if decision == .expired && client.pointee.socket.isReset {
      client.pointee.socket.failure = SystemCallError.text(of: ECONNRESET)
      settleEndpoint(session)
      return
    }
    if let age, now >= age {
      closeEndpoint(session, .timeout, reason: "the session has reached its maximum age")
      return
    }
    var next = age ?? .max
    switch decision {
    case .expired:
      let reason = silence.isHeard ? "the client was silent for too long" : "no progress for too long"
      closeEndpoint(session, .timeout, reason: reason)
      return
    case .ping(let check):
      client.pointee.lastPing = now
      if client.pointee.socket.outbox.isEmpty {
        sendToClient(session, endpoint.socket.ping(Array("sallyport".utf8)))
      }
      next = min(next, check)
    case .wait(let check):
      next = min(next, check)
    }
    if next < .max { timers.schedule(session.pointee.timer, at: max(next, now + 1)) }
    settleEndpoint(session)
  }
}
