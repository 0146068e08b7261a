internal import Transport

/// Relays frames between the peers, in order and with bounded buffers.
extension EventLoop {
  /// Opens the relay: the upstream has sent its 101, and the client gets one.
  func openRelay(_ session: SessionRef, _ http: HTTPConnection, _ answer: UpgradeAnswer, _ head: ResponseHead) {
    guard let plan = session.pointee.plan, isStillPermitted(session) else { return }
    do throws(HeadWriteError) {
      sendToClient(
        session,
        try ResponseWriter.switchingProtocols(
          accept: answer.accept, subprotocol: answer.subprotocol,
          extensions: head.headers.values(of: "Sec-WebSocket-Extensions").compactMap(EmptyElements.removed),
          fields: plan.answerFields(from: head.endToEndFields)))
    } catch {
      upstreamFailed(session, .misbehaved(error.rawValue))
      return
    }
    session.pointee.phase = .relay
    let token = session.pointee.token
    begin(session, plan)
    let fromUpstream = http.request.upstreamInbox
    let fromClient = http.inbox
    session.pointee.http = nil
    // Either peer may have sent frames before the other one was ready.
    guard fromUpstream.withUnsafeBytes({ forward($0, from: .upstream, of: session) }),
      fromClient.withUnsafeBytes({ forward($0, from: .client, of: session) })
    else { return }
    relayTimer(session)
    if slots.session(token) != nil { closeIfDraining(session) }
  }

  /// Starts the timers of an admitted session and reports to the plan that it has opened.
  func begin(_ session: SessionRef, _ plan: any RelayPlan) {
    session.pointee.openedAt = now
    session.pointee.bounds = RelayBounds(plan.limits, now: now)
    session.pointee.pingToken = random.next()
    for index in 0..<2 { session.pointee.ends[index].socket.lastHeard = now }
    let token = session.pointee.token
    plan.opened(
      // Weak: a control handle must not keep the loop alive.
      SessionControl { [weak self] code, reason in
        self?.execute { loop in
          if let session = loop.slots.session(token) { loop.close(session, code, reason: reason) }
        }
      })
  }

  /// Handles input from one peer or the end of its stream.
  func relay(_ session: SessionRef, from side: Side) {
    let source = session.pointee.ends + side.index
    guard source.pointee.socket.isOpen else { return }
    let reception = source.pointee.socket.receive(into: plain.start, through: buffers)
    if reception.count > 0 {
      source.pointee.socket.lastHeard = now
      let continuesFrame = !source.pointee.frames.isAtBoundary
      guard forward(gathered(reception.count, behind: source), from: side, of: session) else { return }
      if continuesFrame || !source.pointee.frames.isAtBoundary {
        session.pointee.ends[side.other.index].lastPart = now
      }
    }
    settle(session)
  }

  /// Returns the received bytes with the bytes of this peer that were held back in front of them.
  private func gathered(_ count: Int, behind source: UnsafeMutablePointer<SessionEnd>) -> UnsafeRawBufferPointer {
    let held = source.pointee.held.count
    guard held > 0 else { return UnsafeRawBufferPointer(start: plain.start, count: count) }
    let start = plain.start - held
    start.copyMemory(from: source.pointee.held.bytes.baseAddress ?? UnsafeRawPointer(start), byteCount: held)
    source.pointee.held.removeAll()
    return UnsafeRawBufferPointer(start: start, count: held + count)
  }

  /// Passes `bytes`, which continue the previous ones, to the other peer and handles the frames that concern the
  /// gate. Returns `false` if the session is gone.
  private func forward(_ bytes: UnsafeRawBufferPointer, from side: Side, of session: SessionRef) -> Bool {
    let source = session.pointee.ends + side.index
    let target = session.pointee.ends + side.other.index
    var rest = bytes
    while rest.count > 0 {
      let (count, stop) = source.pointee.frames.advance(
        over: rest, maxMessage: session.pointee.bounds.maxMessage,
        pong: source.pointee.pongsDue > 0 ? session.pointee.pingToken : nil,
        stopsAtBoundary: target.pointee.pendingFrame != nil)
      if count > 0 { deliver(UnsafeRawBufferPointer(rebasing: rest[..<count]), from: source, to: target) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      switch stop {
      case .windowEnd:
        if source.pointee.frames.isAtBoundary { flushPendingFrame(session, to: side.other) }
        return true
      case .boundary:
        flushPendingFrame(session, to: side.other)
      case .incomplete:
        source.pointee.held.append(rest)
        return true
      case .close(let code):
        noteClose(session, by: side, code)
      case .pong(let length):
        source.pointee.pongsDue -= 1
        rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      case .tooBig:
        // If both peers are gone already, `close` also destroys the session.
        let token = session.pointee.token
        close(session, .tooBig, reason: "a message is longer than \(session.pointee.bounds.maxMessage) bytes")
        return slots.session(token) != nil
      }
    }
    return true
  }

  private func deliver(
    _ bytes: UnsafeRawBufferPointer, from source: UnsafeMutablePointer<SessionEnd>,
    to target: UnsafeMutablePointer<SessionEnd>
  ) {
    // Nothing may follow the gate's Close frame.
    guard !target.pointee.isToldToClose, target.pointee.socket.isOpen else { return }
    source.pointee.bytes &+= UInt64(bytes.count)
    target.pointee.socket.send(bytes, through: buffers)
  }

  private func noteClose(_ session: SessionRef, by side: Side, _ code: UInt16?) {
    if session.pointee.end == nil { session.pointee.end = .closed(by: side.name, code: code) }
    let other = session.pointee.ends + side.other.index
    guard other.pointee.frames.hasClosed else { return }
    // Both peers have sent a Close frame: only the sockets remain to be closed.
    limitPatience(session, to: closePatience)
  }

  /// Runs after every event: passes on the end of a stream, stops or resumes reading, and ends the session
  /// when both peers are finished.
  func settle(_ session: SessionRef) {
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    if client.pointee.socket.failure != nil || client.pointee.socket.hasEnded
      || upstream.pointee.socket.failure != nil || upstream.pointee.socket.hasEnded || session.pointee.isClosedByGate
    {
      guard settleEnds(session) else { return }
    }
    // Reading resumes when the previous bytes have been passed on.
    updateRelayInterest(session, .client, reads: upstream.pointee.socket.outbox.isEmpty)
    updateRelayInterest(session, .upstream, reads: client.pointee.socket.outbox.isEmpty)
  }

  /// Like `updateInterest`, for a peer whose silence is measured.
  func updateRelayInterest(_ session: SessionRef, _ side: Side, reads: Bool) {
    let end = session.pointee.ends + side.index
    let input = reads && end.pointee.socket.mayRead ? Readiness.input : 0
    var wanted = input | (end.pointee.socket.outbox.isEmpty ? 0 : Readiness.output)
    if wanted == 0, side == .client, !end.pointee.socket.hasEnded, !end.pointee.socket.isReset {
      wanted = Readiness.reset
    }
    if wanted != end.pointee.socket.interest {
      // Time in which the gate did not read is not silence of the peer.
      if input != 0 { end.pointee.socket.lastHeard = now }
      setInterest(session, side, wanted)
    }
  }
}
