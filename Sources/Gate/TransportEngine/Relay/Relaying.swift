internal import Transport

/// The relay itself: what one end sends, the other gets, in order and without growing.
extension EventLoop {
  /// The upstream has agreed to speak WebSocket: so does the gate.
  func openRelay(_ session: SessionRef, _ exchange: Exchange, _ answer: UpgradeAnswer, _ head: ResponseHead) {
    guard let order = session.pointee.order, orderStands(session) else { return }
    do throws(HeadWriteFault) {
      sendToClient(
        session,
        try ResponseWriter.switchingProtocols(
          accept: answer.accept, subprotocol: answer.subprotocol,
          extensions: head.headers.values(of: "Sec-WebSocket-Extensions"),
          fields: order.answerFields(from: head.endToEndFields)))
    } catch {
      upstreamFailed(session, .misbehaved(error.rawValue))
      return
    }
    session.pointee.phase = .relay
    let token = session.pointee.token
    begin(session, order)
    let fromUpstream = exchange.upstreamInbox
    let fromClient = exchange.inbox
    session.pointee.exchange = nil
    // Either end may have said something before the other was ready to hear it.
    guard fromUpstream.withUnsafeBytes({ forward($0, from: .upstream, of: session) }),
      fromClient.withUnsafeBytes({ forward($0, from: .client, of: session) })
    else { return }
    relayTimer(session)
    if slots.session(token) != nil { closeIfDraining(session) }
  }

  /// Starts the clock of an admitted session and tells its order.
  func begin(_ session: SessionRef, _ order: any RelayOrder) {
    session.pointee.openedAt = now
    session.pointee.bounds = RelayBounds(order.limits, now: now)
    session.pointee.pingToken = random.next()
    for index in 0..<2 { session.pointee.ends[index].link.lastHeard = now }
    let token = session.pointee.token
    order.opened(
      // Weak: a caller that keeps the handle must not keep the loop.
      SessionControl { [weak self] code, reason in
        self?.execute { loop in
          if let session = loop.slots.session(token) { loop.close(session, code, reason: reason) }
        }
      })
  }

  /// One end has sent something, or ended.
  func relay(_ session: SessionRef, from side: Side) {
    let source = session.pointee.ends + side.index
    guard source.pointee.link.isOpen else { return }
    let reception = source.pointee.link.receive(into: plain.start, through: window)
    if reception.count > 0 {
      source.pointee.link.lastHeard = now
      guard forward(gathered(reception.count, behind: source), from: side, of: session) else { return }
    }
    settle(session)
  }

  /// What has just been received, with what was held back of this end's frames in front of it.
  private func gathered(_ count: Int, behind source: UnsafeMutablePointer<SessionEnd>) -> UnsafeRawBufferPointer {
    let held = source.pointee.held.count
    guard held > 0 else { return UnsafeRawBufferPointer(start: plain.start, count: count) }
    let start = plain.start - held
    start.copyMemory(from: source.pointee.held.bytes.baseAddress ?? UnsafeRawPointer(start), byteCount: held)
    source.pointee.held.removeAll()
    return UnsafeRawBufferPointer(start: start, count: held + count)
  }

  /// Hands `bytes`, which begin where the last ones ended, to the other end, and acts on what they mean to the gate.
  /// `false` if the session is gone.
  private func forward(_ bytes: UnsafeRawBufferPointer, from side: Side, of session: SessionRef) -> Bool {
    let source = session.pointee.ends + side.index
    let target = session.pointee.ends + side.other.index
    var rest = bytes
    while rest.count > 0 {
      let (count, stop) = source.pointee.frames.advance(
        over: rest, maxMessage: session.pointee.bounds.maxMessage,
        pong: source.pointee.pongsDue > 0 ? session.pointee.pingToken : nil,
        stopsAtBoundary: target.pointee.owed != nil)
      if count > 0 { deliver(UnsafeRawBufferPointer(rebasing: rest[..<count]), from: source, to: target) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      switch stop {
      case .windowEnd:
        if source.pointee.frames.isAtBoundary { payDebt(session, to: side.other) }
        return true
      case .boundary:
        payDebt(session, to: side.other)
      case .incomplete:
        source.pointee.held.append(rest)
        return true
      case .close(let code):
        noteClose(session, by: side, code)
      case .pong(let length):
        source.pointee.pongsDue -= 1
        rest = UnsafeRawBufferPointer(rebasing: rest[length...])
      case .tooBig:
        // Ends that are gone by now end the session with it.
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
    // Behind a Close of the gate nothing may follow.
    guard !target.pointee.isToldToClose, target.pointee.link.isOpen else { return }
    source.pointee.bytes &+= UInt64(bytes.count)
    target.pointee.link.send(bytes, through: window)
  }

  private func noteClose(_ session: SessionRef, by side: Side, _ code: UInt16?) {
    if session.pointee.end == nil { session.pointee.end = .closed(by: side.name, code: code) }
    let other = session.pointee.ends + side.other.index
    guard other.pointee.frames.hasClosed else { return }
    // Both have said goodbye: what is left is to close the sockets.
    limitPatience(session, to: closePatience)
  }

  /// After anything happened: passes ends on, stops or resumes reading, and ends the session when nothing is left.
  func settle(_ session: SessionRef) {
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    if client.pointee.link.failure != nil || client.pointee.link.hasEnded
      || upstream.pointee.link.failure != nil || upstream.pointee.link.hasEnded || session.pointee.isClosedByGate
    {
      guard settleEnds(session) else { return }
    }
    // Reading goes on when what was read before has been passed on.
    updateRelayInterest(session, .client, reads: upstream.pointee.link.outbox.isEmpty)
    updateRelayInterest(session, .upstream, reads: client.pointee.link.outbox.isEmpty)
  }

  /// Like `updateInterest`, for an end whose silence counts.
  func updateRelayInterest(_ session: SessionRef, _ side: Side, reads: Bool) {
    let end = session.pointee.ends + side.index
    let input = reads && end.pointee.link.mayRead ? Readiness.input : 0
    var wanted = input | (end.pointee.link.outbox.isEmpty ? 0 : Readiness.output)
    if wanted == 0, side == .client, !end.pointee.link.hasEnded, !end.pointee.link.isReset { wanted = Readiness.reset }
    if wanted != end.pointee.link.interest {
      // Time during which we did not listen is not silence.
      if input != 0 { end.pointee.link.lastHeard = now }
      setInterest(session, side, wanted)
    }
  }
}
