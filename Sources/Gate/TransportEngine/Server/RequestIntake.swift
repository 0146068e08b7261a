internal import ByteCoding
internal import Transport

/// Reads requests from plaintext and asks the responder for a decision.
extension EventLoop {
  /// Makes the connection wait for its first or its next request.
  func startRequest(_ session: SessionRef) {
    guard let service, let http = session.pointee.http else { return }
    session.pointee.phase = .head
    session.pointee.waitOrder = nextWaitOrder()
    http.request = RequestState(id: makeRequestID())
    let isIdle = http.answered > 0 && http.inbox.isEmpty
    schedule(session, after: isIdle ? service.limits.keepAliveTimeout : service.limits.headTimeout)
    // Requests that have already arrived are handled first.
    updateInterest(session, .client, reads: http.inbox.isEmpty)
  }

  func headExpired(_ session: SessionRef) {
    guard let http = session.pointee.http, http.inbox.isEmpty else {
      refuse(session, .tooSlow)
      return
    }
    // No request was sent, so no response is due. A client that had a response gets a lingering close.
    if http.answered > 0 { beginLingeringClose(session) } else { destroy(session) }
  }

  private func makeRequestID() -> String {
    let halves: [2 of UInt64] = [random.next(), random.next()]
    return String(unsafeUninitializedCapacity: 32) { digits in
      for half in 0..<2 {
        var rest = halves[half]
        for index in half * 16..<half * 16 + 16 {
          rest = rest << 4 | rest >> 60
          let digit = UInt8(truncatingIfNeeded: rest & 15)
          digits[index] = (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) + digit
        }
      }
      return 32
    }
  }

  func requestReadable(_ session: SessionRef) {
    let client = session.pointee.ends
    let reception = client.pointee.socket.receive(into: plain.start, through: buffers)
    guard client.pointee.socket.failure == nil else {
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
    case .head where reception.count > 0 && session.pointee.http?.inbox.isEmpty == false:
      // One request is already answered, and the one that follows it is parsed next.
      break
    case .head, .body: destroy(session)
    case .connection, .upstreamHandshake, .upgrade: watchWaitingClient(session)
    // It is watched already.
    case .forward: break
    default: updateInterest(session, .client, reads: false)
    }
  }

  /// Handles `count` bytes of plaintext from the client.
  private func requestArrived(_ session: SessionRef, count: Int) {
    guard let http = session.pointee.http else { return }
    let bytes = UnsafeBufferPointer(start: plain.start.assumingMemoryBound(to: UInt8.self), count: count)
    switch session.pointee.phase {
    case .head: headArrived(session, http, bytes)
    case .body: bodyArrived(session, http, bytes)
    default: http.inbox.append(contentsOf: bytes)
    }
  }

  /// Parses what the client sent after its last request.
  func resumeRequests(_ token: SlotToken) {
    guard let session = slots.session(token), session.pointee.phase == .head, let http = session.pointee.http
    else { return }
    let bytes = http.inbox
    http.inbox = []
    bytes.withUnsafeBufferPointer { headArrived(session, http, $0) }
  }

  private func headArrived(_ session: SessionRef, _ http: HTTPConnection, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard !bytes.isEmpty else { return }
    if http.inbox.isEmpty {
      if http.answered > 0, let service { schedule(session, after: service.limits.headTimeout) }
      parseHead(session, http, bytes)
    } else {
      http.inbox.append(contentsOf: bytes)
      // Only a line feed can complete a head. A fault without one is reported at the end of its line, or when the time
      // for the head has passed.
      guard bytes.contains(UInt8(ascii: "\n")) || http.inbox.count > headLimits.bytes else {
        awaitMore(session)
        return
      }
      var gathered: [UInt8] = []
      swap(&gathered, &http.inbox)
      if gathered.first == .carriageReturn, !http.request.hasSkippedLine {
        gathered.withUnsafeBufferPointer { parseHead(session, http, $0) }
        return
      }
      let result = gathered.withUnsafeBufferPointer {
        RequestHead.parse($0, continuing: &http.scannedFields, limits: headLimits, unread: service?.unreadPaths)
      }
      if case .incomplete = result {
        http.inbox = gathered
        awaitMore(session)
        return
      }
      http.scannedFields = nil
      gathered.withUnsafeBufferPointer { headParsed(session, http, result, $0) }
    }
  }

  private var headLimits: HeadLimits { service.map { .request(bytes: $0.limits.maxHead) } ?? .standard }

  private func parseHead(_ session: SessionRef, _ http: HTTPConnection, _ bytes: UnsafeBufferPointer<UInt8>) {
    if bytes.first == .carriageReturn, !http.request.hasSkippedLine {
      skipEmptyLine(session, http, bytes)
      return
    }
    headParsed(session, http, RequestHead.parse(bytes, limits: headLimits, unread: service?.unreadPaths), bytes)
  }

  private func headParsed(
    _ session: SessionRef, _ http: HTTPConnection, _ result: HeadParse, _ bytes: UnsafeBufferPointer<UInt8>
  ) {
    switch result {
    case .incomplete:
      http.inbox = Array(bytes)
      awaitMore(session)
    case .fault(let fault):
      refuse(session, fault, at: RequestHead.path(ofFaulty: bytes, limits: headLimits, unread: service?.unreadPaths))
    case .head(let head, let length):
      if head.hasOpaqueValues, let service, head.headers.hasOpaqueValue(in: service.ownFields) {
        refuse(session, HeadError.fieldEncoding.requestError, at: head.path)
        return
      }
      http.request.head = head
      headCompleted(session, http, head, UnsafeBufferPointer(rebasing: bytes[length...]))
    }
  }

  /// Skips one CRLF before a request: some clients send an extra one after a body (RFC 9112 section 2.2). The head
  /// parser itself accepts none, and a second one is an error.
  private func skipEmptyLine(_ session: SessionRef, _ http: HTTPConnection, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count > 1 else {
      http.inbox = Array(bytes)
      awaitMore(session)
      return
    }
    http.request.hasSkippedLine = true
    guard bytes[1] == .lineFeed else {
      parseHead(session, http, bytes)
      return
    }
    guard bytes.count > 2 else {
      // No request has begun: the connection stays idle.
      if http.answered > 0, let service { schedule(session, after: service.limits.keepAliveTimeout) }
      awaitMore(session)
      return
    }
    parseHead(session, http, UnsafeBufferPointer(rebasing: bytes[2...]))
  }

  /// Waits for more bytes, or closes the connection if the client has closed its sending side. That
  /// end is reported only once.
  private func awaitMore(_ session: SessionRef) {
    if session.pointee.ends.pointee.socket.hasEnded { destroy(session) } else { updateInterest(session, .client) }
  }

  private func headCompleted(
    _ session: SessionRef, _ http: HTTPConnection, _ head: RequestHead, _ rest: UnsafeBufferPointer<UInt8>
  ) {
    guard let service else { return }
    if case .fault(let fault) = head.upgrade {
      refuse(session, fault)
      return
    }
    if hasStreamedBody(head, http, service) {
      http.request.isBodyPending = true
      http.inbox = Array(rest)
      decide(session, http, head, body: [])
      return
    }
    do throws(BodyError) {
      let body = try BodyReader(head.framing, limit: service.limits.maxBody, extras: .refused)
      guard !body.isComplete else {
        http.inbox = Array(rest)
        decide(session, http, head, body: [])
        return
      }
      http.request.bodyReader = body
      session.pointee.phase = .body
      schedule(session, after: service.limits.bodyTimeout)
      if head.expectsContinue && rest.isEmpty { sendToClient(session, ResponseWriter.goOn) }
      bodyArrived(session, http, rest)
    } catch {
      refuse(session, error.requestError)
    }
  }

  private func hasStreamedBody(_ head: RequestHead, _ http: HTTPConnection, _ service: SessionService) -> Bool {
    guard case .none = head.upgrade, head.framing != .none, head.framing != .length(0) else { return false }
    return service.responder.streamsBody(of: Request(head, id: http.request.id))
  }

  private func bodyArrived(_ session: SessionRef, _ http: HTTPConnection, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard let head = http.request.head else { return }
    do throws(BodyError) {
      let taken = try http.request.bodyReader?.feed(bytes) ?? 0
      guard let body = http.request.bodyReader, body.isComplete else {
        awaitMore(session)
        return
      }
      http.inbox = Array(bytes[taken...])
      http.request.bodyReader = nil
      http.request.isBodyRead = true
      decide(session, http, head, body: body.body)
    } catch {
      refuse(session, error.requestError)
    }
  }

  // MARK: Decision

  private func decide(_ session: SessionRef, _ http: HTTPConnection, _ head: RequestHead, body: [UInt8]) {
    guard let service else { return }
    var intent: UpgradeIntent?
    if case .webSocket(let wanted) = head.upgrade { intent = wanted }
    http.request.upgrade = intent
    // A client that asked for an upgrade may send frames next, or another protocol than HTTP/1.1.
    http.request.closesAfterAnswer =
      head.wantsClose || head.asksForUpgrade || isLeaving || http.answered + 1 >= service.limits.maxRequests
    let request = Request(head, id: http.request.id, body: body, upgrade: intent)
    dropStaleCertificate(http, service)
    var peer = http.peer
    // From the loop's time, which costs no call of the clock.
    if http.answered == 0, let end = http.handshakeEndedAt {
      peer.handshake = HandshakeTiming(duration: .milliseconds(end - http.acceptedAt), age: .milliseconds(now - end))
    }
    session.pointee.phase = .decision
    if let disposition = service.responder.respondAtOnce(to: request, from: peer) {
      carryOut(disposition, for: session)
      return
    }
    let token = session.pointee.token
    // Runs on this loop at once: a decision that does not wait is complete when this returns.
    Task.immediate(executorPreference: self) { [self, peer] in
      let disposition = await service.responder.respond(to: request, from: peer)
      guard let session = slots.session(token), session.pointee.phase == .decision else { return }
      // The responder may have worked on other threads in between.
      requireOwnThread()
      carryOut(disposition, for: session)
    }
    guard let session = slots.session(token), session.pointee.phase == .decision else { return }
    schedule(session, after: service.limits.decisionTimeout)
  }

  /// Drops a client certificate that would no longer be accepted on a new connection: it has expired,
  /// or an authority was removed, or it was revoked, or a list of revoked certificates is missing.
  private func dropStaleCertificate(_ http: HTTPConnection, _ service: SessionService) {
    guard let certificate = http.peer.verifiedCertificate else { return }
    let now = Timestamp.now()
    let isCurrent =
      service.tls?.accepts(
        authorities: certificate.authorities, links: certificate.links, issuers: certificate.issuers, at: now) ?? false
    if !isCurrent || now >= certificate.expiresAt {
      http.peer = Peer(address: http.address, endpoint: http.peer.endpoint)
    }
  }

  private func carryOut(_ disposition: Disposition, for session: SessionRef) {
    guard let http = session.pointee.http else { return }
    switch disposition {
    case .respond(let response):
      // The rest of the body may still arrive and must not be parsed as a request.
      if http.request.isBodyPending { http.request.closesAfterAnswer = true }
      answer(session, response)
    case .forward where http.request.isBodyRead:
      // The configuration was replaced while the body was read for the old responder: it can no longer be forwarded.
      answerWithoutDecision(session)
    case .forward(let plan, let head) where http.request.upgrade == nil:
      openForward(session, http, plan, head: head)
    case .relay(let plan, let upgradeHead) where http.request.upgrade != nil:
      http.request.upgradeHead = upgradeHead
      openUpstream(session, http, plan)
    case .converse(let conversation) where http.request.upgrade != nil:
      openConversation(session, http, conversation)
    case .relay, .converse, .forward:
      // The responder's mistake, not the client's.
      answer(session, Response(status: 500, closes: true))
    }
  }
}

extension Request {
  init(_ head: RequestHead, id: String, body: [UInt8] = [], upgrade: UpgradeIntent? = nil) {
    self.init(
      id: id, method: head.method, target: head.target, path: head.path, headers: head.headers, body: body,
      upgrade: upgrade)
  }
}
