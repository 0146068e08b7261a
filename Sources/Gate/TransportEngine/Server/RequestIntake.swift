internal import Transport

/// Reads requests from plaintext and asks the responder for a decision.
extension EventLoop {
  /// Makes the connection wait for its first or its next request.
  func startRequest(_ session: SessionRef) {
    guard let service, let exchange = session.pointee.exchange else { return }
    session.pointee.phase = .head
    exchange.head = nil
    exchange.hasSkippedLine = false
    exchange.body = nil
    exchange.isBodyPending = false
    exchange.isBodyRead = false
    exchange.requestID = makeRequestID()
    let isIdle = exchange.answered > 0 && exchange.inbox.isEmpty
    schedule(session, after: isIdle ? service.limits.keepAliveTimeout : service.limits.headTimeout)
    // Requests that have already arrived are handled first.
    updateInterest(session, .client, reads: exchange.inbox.isEmpty)
  }

  func headExpired(_ session: SessionRef) {
    guard let exchange = session.pointee.exchange, exchange.inbox.isEmpty else {
      refuse(session, .tooSlow)
      return
    }
    // No request was sent, so no response is due. A client that had a response gets a lingering close.
    if exchange.answered > 0 { beginLingeringClose(session) } else { destroy(session) }
  }

  private func makeRequestID() -> String {
    func digits(_ value: UInt64) -> String {
      let text = String(value, radix: 16)
      return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
    return digits(random.next()) + digits(random.next())
  }

  func requestReadable(_ session: SessionRef) {
    let client = session.pointee.ends
    let reception = client.pointee.link.receive(into: plain.start, through: window)
    guard client.pointee.link.failure == nil else {
      destroy(session)
      return
    }
    requestReceived(session, reception)
  }

  /// Handles plaintext from the client, the end of its stream, or both.
  func requestReceived(_ session: SessionRef, _ reception: Reception) {
    let token = session.pointee.token
    if reception.count > 0 { requestArrived(session, count: reception.count) }
    guard reception.ended, slots.session(token) != nil else { return }
    // A client that closes its sending side before its request is complete gets no response.
    // Otherwise it may still be reading.
    switch session.pointee.phase {
    case .head where reception.count > 0 && session.pointee.exchange?.inbox.isEmpty == false:
      // One request is already answered, and the one that follows it is parsed next.
      break
    case .head, .body: destroy(session)
    default: updateInterest(session, .client, reads: false)
    }
  }

  /// Handles `count` bytes of plaintext from the client.
  private func requestArrived(_ session: SessionRef, count: Int) {
    guard let exchange = session.pointee.exchange else { return }
    let bytes = UnsafeBufferPointer(start: plain.start.assumingMemoryBound(to: UInt8.self), count: count)
    switch session.pointee.phase {
    case .head: headArrived(session, exchange, bytes)
    case .body: bodyArrived(session, exchange, bytes)
    default: exchange.inbox.append(contentsOf: bytes)
    }
  }

  /// Parses what the client sent after its last request.
  func resumeRequests(_ token: SlotToken) {
    guard let session = slots.session(token), session.pointee.phase == .head, let exchange = session.pointee.exchange
    else { return }
    let bytes = exchange.inbox
    exchange.inbox = []
    bytes.withUnsafeBufferPointer { headArrived(session, exchange, $0) }
  }

  private func headArrived(_ session: SessionRef, _ exchange: Exchange, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard !bytes.isEmpty else { return }
    if exchange.inbox.isEmpty {
      if exchange.answered > 0, let service { schedule(session, after: service.limits.headTimeout) }
      parseHead(session, exchange, bytes)
    } else {
      exchange.inbox.append(contentsOf: bytes)
      // Only a line feed can complete a head. Without one, only the length limit can make a valid prefix invalid.
      guard bytes.contains(UInt8(ascii: "\n")) || exchange.inbox.count > HeadLimits.standard.bytes else {
        awaitMore(session)
        return
      }
      let gathered = exchange.inbox
      exchange.inbox = []
      gathered.withUnsafeBufferPointer { parseHead(session, exchange, $0) }
    }
  }

  private func parseHead(_ session: SessionRef, _ exchange: Exchange, _ bytes: UnsafeBufferPointer<UInt8>) {
    if bytes.first == .carriageReturn, !exchange.hasSkippedLine {
      skipEmptyLine(session, exchange, bytes)
      return
    }
    switch RequestHead.parse(bytes) {
    case .incomplete:
      exchange.inbox = Array(bytes)
      awaitMore(session)
    case .fault(let fault):
      refuse(session, fault)
    case .head(let head, let length):
      exchange.head = head
      headCompleted(session, exchange, head, UnsafeBufferPointer(rebasing: bytes[length...]))
    }
  }

  /// Skips one CRLF before a request: some clients send an extra one after a body (RFC 9112 section 2.2). The head
  /// parser itself accepts none, and a second one is an error.
  private func skipEmptyLine(_ session: SessionRef, _ exchange: Exchange, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count > 1 else {
      exchange.inbox = Array(bytes)
      awaitMore(session)
      return
    }
    exchange.hasSkippedLine = true
    guard bytes[1] == .lineFeed else {
      parseHead(session, exchange, bytes)
      return
    }
    guard bytes.count > 2 else {
      // No request has begun: the connection stays idle.
      if exchange.answered > 0, let service { schedule(session, after: service.limits.keepAliveTimeout) }
      awaitMore(session)
      return
    }
    parseHead(session, exchange, UnsafeBufferPointer(rebasing: bytes[2...]))
  }

  /// Waits for more bytes, or closes the connection if the client has closed its sending side. That
  /// end is reported only once.
  private func awaitMore(_ session: SessionRef) {
    if session.pointee.ends.pointee.link.hasEnded { destroy(session) } else { updateInterest(session, .client) }
  }

  private func headCompleted(
    _ session: SessionRef, _ exchange: Exchange, _ head: RequestHead, _ rest: UnsafeBufferPointer<UInt8>
  ) {
    guard let service else { return }
    if case .fault(let fault) = head.upgrade {
      refuse(session, fault)
      return
    }
    if hasStreamedBody(head, exchange, service) {
      exchange.isBodyPending = true
      exchange.inbox = Array(rest)
      decide(session, exchange, head, body: [])
      return
    }
    do throws(BodyFault) {
      let body = try BodyReader(head.framing, limit: service.limits.maxBody, extras: .refused)
      guard !body.isComplete else {
        exchange.inbox = Array(rest)
        decide(session, exchange, head, body: [])
        return
      }
      exchange.body = body
      session.pointee.phase = .body
      schedule(session, after: service.limits.bodyTimeout)
      if head.expectsContinue && rest.isEmpty { sendToClient(session, ResponseWriter.goOn) }
      bodyArrived(session, exchange, rest)
    } catch {
      refuse(session, error.requestFault)
    }
  }

  private func hasStreamedBody(_ head: RequestHead, _ exchange: Exchange, _ service: SessionService) -> Bool {
    guard case .none = head.upgrade, head.framing != .none, head.framing != .length(0) else { return false }
    return service.responder.streamsBody(of: Request(head, id: exchange.requestID))
  }

  private func bodyArrived(_ session: SessionRef, _ exchange: Exchange, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard let head = exchange.head else { return }
    do throws(BodyFault) {
      let taken = try exchange.body?.feed(bytes) ?? 0
      guard let body = exchange.body, body.isComplete else {
        awaitMore(session)
        return
      }
      exchange.inbox = Array(bytes[taken...])
      exchange.body = nil
      exchange.isBodyRead = true
      decide(session, exchange, head, body: body.body)
    } catch {
      refuse(session, error.requestFault)
    }
  }

  // MARK: Decision

  private func decide(_ session: SessionRef, _ exchange: Exchange, _ head: RequestHead, body: [UInt8]) {
    guard let service else { return }
    var intent: UpgradeIntent?
    if case .webSocket(let wanted) = head.upgrade { intent = wanted }
    exchange.upgrade = intent
    // A client that asked for an upgrade may send frames next.
    exchange.closesAfterAnswer =
      head.wantsClose || intent != nil || isLeaving || exchange.answered + 1 >= service.limits.maxRequests
    let request = Request(head, id: exchange.requestID, body: body, upgrade: intent)
    dropStaleCertificate(of: session, exchange, service)
    let peer = exchange.peer
    session.pointee.phase = .decision
    let token = session.pointee.token
    // Runs on this loop at once: a decision that does not wait is complete when this returns.
    Task.immediate(executorPreference: self) { [self] in
      let disposition = await service.responder.respond(to: request, from: peer)
      guard let session = slots.session(token), session.pointee.phase == .decision else { return }
      carryOut(disposition, for: session)
    }
    guard let session = slots.session(token), session.pointee.phase == .decision else { return }
    schedule(session, after: service.limits.decisionTimeout)
  }

  /// Drops a client certificate that would no longer be accepted on a new connection: it has expired,
  /// or an authority was removed.
  private func dropStaleCertificate(of session: SessionRef, _ exchange: Exchange, _ service: SessionService) {
    guard exchange.peer.verifiedCertificate != nil else { return }
    if let tls = session.pointee.ends.pointee.link.tls, let current = service.tls?.clientAuthorities,
      current.isSuperset(of: exchange.clientAuthorities), PeerCertificate.isCurrent(in: tls)
    {
      return
    }
    exchange.peer = Peer(address: exchange.address)
  }

  private func carryOut(_ disposition: Disposition, for session: SessionRef) {
    guard let exchange = session.pointee.exchange else { return }
    switch disposition {
    case .respond(let response):
      // The rest of the body may still arrive and must not be parsed as a request.
      if exchange.isBodyPending { exchange.closesAfterAnswer = true }
      answer(session, response)
    case .forward where exchange.isBodyRead:
      // The configuration was replaced while the body was read for the old responder: it can no longer be forwarded.
      answer(session, Response(status: 503, closes: true))
    case .forward(let order, let head) where exchange.upgrade == nil:
      openForward(session, exchange, order, head: head)
    case .relay(let order, let upgradeHead) where exchange.upgrade != nil:
      exchange.upgradeHead = upgradeHead
      openUpstream(session, exchange, order)
    case .converse(let conversation) where exchange.upgrade != nil:
      openConversation(session, exchange, conversation)
    case .relay, .converse, .forward:
      // The responder's mistake, not the client's.
      answer(session, Response(status: 500, closes: true))
    }
  }
}

extension Request {
  fileprivate init(_ head: RequestHead, id: String, body: [UInt8] = [], upgrade: UpgradeIntent? = nil) {
    self.init(
      id: id, method: head.method, target: head.target, path: head.path, headers: head.headers, body: body,
      upgrade: upgrade)
  }
}
