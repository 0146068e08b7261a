internal import ByteCoding
internal import Transport

/// Forwards bodies in both directions. A peer is read only while the other one accepts data, so
/// that buffers stay bounded.
extension EventLoop {
  func forwardReadable(_ session: SessionRef, _ side: Side) {
    guard let http = session.pointee.http, let forward = http.request.forward else { return }
    let end = session.pointee.ends + side.index
    guard end.pointee.socket.isOpen else { return }
    let reception = end.pointee.socket.receive(into: plain.start, through: buffers)
    let bytes = UnsafeBufferPointer(
      start: plain.start.assumingMemoryBound(to: UInt8.self), count: reception.count)
    if reception.count > 0 { schedule(session, after: forward.plan.limits.idleTimeout) }
    let token = session.pointee.token
    switch side {
    case .client: forwardFromClient(session, http, forward, bytes)
    case .upstream: forwardFromUpstream(session, http, forward, bytes)
    }
    guard reception.ended, slots.session(token) != nil, http.request.forward === forward,
      session.pointee.phase == .forward
    else { return }
    switch side {
    // A client that closes before its request is complete gets no response. Otherwise it may still be reading.
    case .client:
      if !forward.request.isComplete || session.pointee.ends.pointee.socket.failure != nil { destroy(session) }
    case .upstream: upstreamLeft(session, http, forward)
    }
  }

  func forwardWritable(_ session: SessionRef) {
    guard let forward = session.pointee.http?.request.forward else { return }
    schedule(session, after: forward.plan.limits.idleTimeout)
    settleForward(session, forward)
  }

  // MARK: From the client

  func forwardFromClient(
    _ session: SessionRef, _ http: HTTPConnection, _ forward: Forward, _ bytes: UnsafeBufferPointer<UInt8>
  ) {
    do throws(BodyError) {
      var output: [UInt8] = []
      let taken = try forward.request.feed(bytes, into: &output)
      // The bytes after the body belong to the next request, which waits.
      http.inbox.append(contentsOf: bytes[taken...])
      output.withUnsafeBytes { session.pointee.ends[1].socket.send($0, through: buffers) }
      settleForward(session, forward)
    } catch {
      // The upstream must see a truncated request, never a regular end.
      guard forward.response == nil else {
        destroy(session)
        return
      }
      endForward(session, forward)
      refuse(session, error.requestError)
    }
  }

  // MARK: From the upstream

  private func forwardFromUpstream(
    _ session: SessionRef, _ http: HTTPConnection, _ forward: Forward, _ bytes: UnsafeBufferPointer<UInt8>
  ) {
    guard forward.response == nil else {
      answerArrived(session, forward, bytes)
      return
    }
    http.request.upstreamInbox.append(contentsOf: bytes)
    let limits = HeadLimits.response(bytes: forward.plan.maxResponseHead)
    guard limits.mayDecide(http.request.upstreamInbox, after: UnsafeRawBufferPointer(bytes)) else { return }
    while forward.response == nil {
      switch http.request.upstreamInbox.withUnsafeBufferPointer({ ResponseHead.parse($0, limits: limits) }) {
      case .incomplete:
        return
      case .fault(let fault):
        forwardFailed(session, forward, .misbehaved("the response is malformed: \(fault.text(within: limits))"))
        return
      case .head(let head, let length):
        http.request.upstreamInbox.removeFirst(length)
        // The gate did not ask for another protocol. Other interim responses are dropped: the gate
        // itself has sent 100 Continue.
        if head.status == 101 {
          forwardFailed(session, forward, .misbehaved("it switched protocols without an upgrade request"))
          return
        }
        if head.status < 200 {
          forward.interimResponses += 1
          guard forward.interimResponses <= Forward.mostInterimResponses else {
            forwardFailed(
              session, forward, .misbehaved("it sent more than \(Forward.mostInterimResponses) interim responses"))
            return
          }
          continue
        }
        guard beginAnswer(session, http, forward, head) else { return }
      }
    }
    let rest = http.request.upstreamInbox
    http.request.upstreamInbox = []
    rest.withUnsafeBufferPointer { answerArrived(session, forward, $0) }
  }

  /// Sends the response head to the client. Returns `false` if the response cannot be forwarded.
  private func beginAnswer(
    _ session: SessionRef, _ http: HTTPConnection, _ forward: Forward, _ head: ResponseHead
  ) -> Bool {
    let framing = forward.isForHEAD ? .none : head.framing
    // The response came before the whole request was read: the rest of it must not be parsed as another request. After
    // an upgrade the connection takes no other request, which the client must know (RFC 9112 section 9.6).
    if isLeaving || !forward.request.isComplete { http.request.closesAfterAnswer = true }
    do {
      forward.response = try BodyPipe(framing, extras: .dropped)
      forward.status = head.status
      forward.keepsConnection = !head.wantsClose && forward.request.isComplete
      sendToClient(
        session,
        try ResponseWriter.forwarded(
          status: head.status, fields: forward.plan.answerFields(from: head.endToEndFields), framing: head.framing,
          closes: http.request.closesAfterAnswer, isForHEAD: forward.isForHEAD, at: .now()))
      return true
    } catch {
      forward.response = nil
      forwardFailed(session, forward, .misbehaved("its response cannot be forwarded: \(error)"))
      return false
    }
  }

  private func answerArrived(_ session: SessionRef, _ forward: Forward, _ bytes: UnsafeBufferPointer<UInt8>) {
    var output: [UInt8] = []
    do throws(BodyError) {
      let taken = try forward.response?.feed(bytes, into: &output) ?? 0
      // Extra bytes after the response must not become part of the next one.
      if taken < bytes.count { forward.keepsConnection = false }
      sendToClient(session, output)
      settleForward(session, forward)
    } catch {
      destroy(session)
    }
  }

  private func upstreamLeft(_ session: SessionRef, _ http: HTTPConnection, _ forward: Forward) {
    forward.keepsConnection = false
    guard forward.response != nil else {
      if repeatForward(session, forward) { return }
      let reason = session.pointee.ends[1].socket.failure ?? "the connection closed before the response"
      forwardFailed(session, forward, .misbehaved(reason))
      return
    }
    var output: [UInt8] = []
    do throws(BodyError) {
      // Without close_notify, anyone on the path could have ended the stream.
      guard session.pointee.ends[1].socket.endedInOrder else { throw .endedEarly }
      try forward.response?.connectionEnded(into: &output)
      sendToClient(session, output)
      settleForward(session, forward)
    } catch {
      // The client must see that the response is incomplete.
      destroy(session)
    }
  }

  // MARK: What follows

  func settleForward(_ session: SessionRef, _ forward: Forward) {
    let (client, upstream) = (session.pointee.ends, session.pointee.ends + 1)
    guard client.pointee.socket.failure == nil else {
      destroy(session)
      return
    }
    guard forward.response?.isComplete != true else {
      answerForwarded(session, forward)
      return
    }
    updateInterest(
      session, .client,
      reads: !forward.request.isComplete && upstream.pointee.socket.outbox.isEmpty
        && upstream.pointee.socket.failure == nil,
      otherwise: waitingInterest(session))
    updateInterest(session, .upstream, reads: client.pointee.socket.outbox.isEmpty)
  }

  private func answerForwarded(_ session: SessionRef, _ forward: Forward) {
    guard let http = session.pointee.http else { return }
    keepUpstream(session, forward)
    forward.finish(now: now)
    http.request.forward = nil
    http.forwardedPatience = forward.plan.limits.idleTimeout
    http.answered += 1
    if isLeaving { http.request.closesAfterAnswer = true }
    if http.request.closesAfterAnswer { http.inbox = [] }
    session.pointee.phase = .answer
    schedule(session, after: forward.plan.limits.idleTimeout)
    answerFlushed(session)
  }

  /// Sends the client the gate's own response, because the upstream has sent none.
  func forwardFailed(_ session: SessionRef, _ forward: Forward, _ fault: UpstreamError) {
    giveUp(session, forward, answering: forward.plan.response(to: fault))
  }

  func giveUp(_ session: SessionRef, _ forward: Forward, answering response: Response) {
    let isRead = forward.request.isComplete
    endForward(session, forward)
    if !isRead { session.pointee.http?.request.closesAfterAnswer = true }
    answer(session, response)
  }

  func endForward(_ session: SessionRef, _ forward: Forward) {
    setInterest(session, .upstream, 0)
    session.pointee.ends[1].socket.close()
    forward.finish(now: now)
    session.pointee.http?.request.forward = nil
  }

  /// Handles a request for which epoll has reported no progress for too long. epoll does not report every piece that
  /// a slow peer takes, so the kernel is asked.
  func forwardExpired(_ session: SessionRef) {
    guard let forward = session.pointee.http?.request.forward else { return }
    guard !isTaking(session, .client), !isTaking(session, .upstream) else {
      schedule(session, after: forward.plan.limits.idleTimeout)
      return
    }
    guard forward.response == nil else {
      destroy(session)
      return
    }
    guard forward.request.isComplete || !session.pointee.ends[1].socket.outbox.isEmpty else {
      endForward(session, forward)
      refuse(session, .tooSlow)
      return
    }
    forwardFailed(session, forward, .timedOut)
  }
}
