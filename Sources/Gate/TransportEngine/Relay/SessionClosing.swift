internal import Glibc
internal import Transport

/// Closes sessions and detects when they must be closed.
extension EventLoop {
  // MARK: Closed by the gate

  /// Closes an open session with a Close frame to both peers, each between two frames.
  func close(_ session: SessionRef, _ code: CloseCode, reason: String) {
    switch session.pointee.phase {
    case .relay: break
    case .bridge, .conversation:
      closeEndpoint(session, code, reason: reason)
      return
    default:
      return
    }
    // Before the checks: a session that is being closed slowly, as in a drain, may be revoked meanwhile
    // and must then close faster.
    limitPatience(session, to: patience.duration(with: code, at: now))
    guard !session.pointee.isClosedByGate else { return }
    session.pointee.isClosedByGate = true
    if session.pointee.end == nil { session.pointee.end = .closedByGate(code.rawValue, reason: reason) }
    enqueue(session, .close(code, reason: reason), to: .client)
    enqueue(session, .close(code, reason: reason), to: .upstream)
    settle(session)
  }

  /// Sends the gate's control frame to `side` now, or after the frame that is being relayed to it.
  private func enqueue(_ session: SessionRef, _ pending: PendingControlFrame, to side: Side) {
    let target = session.pointee.ends + side.index
    guard target.pointee.socket.isOpen, !target.pointee.isToldToClose else { return }
    if case .ping = pending, target.pointee.pendingFrame != nil { return }
    target.pointee.pendingFrame = pending
    if session.pointee.ends[side.other.index].frames.isAtBoundary { flushPendingFrame(session, to: side) }
  }

  func flushPendingFrame(_ session: SessionRef, to side: Side) {
    let target = session.pointee.ends + side.index
    guard let pending = target.pointee.pendingFrame else { return }
    target.pointee.pendingFrame = nil
    // The other peer's Close frame was passed: nothing may follow it.
    if session.pointee.ends[side.other.index].frames.hasClosed {
      target.pointee.isToldToClose = true
      return
    }
    let mask: UInt32? = side == .upstream ? random.next() : nil
    let frame: [UInt8]
    switch pending {
    case .ping:
      frame = GateFrame.ping(token: session.pointee.pingToken, mask: mask)
      target.pointee.pongsDue += 1
    case .close(let code, let reason):
      frame = GateFrame.close(code.rawValue, reason: reason, mask: mask)
      target.pointee.isToldToClose = true
    }
    frame.withUnsafeBytes { target.pointee.socket.send($0, through: buffers) }
  }

  /// How long peers have to read pending bytes and to close.
  var patience: ClosePatience {
    let limits = service?.limits ?? EngineLimits()
    return ClosePatience(
      closeTimeout: limits.closeTimeout, lostRightTimeout: limits.lostRightTimeout, drainDeadline: drain?.deadline)
  }

  var closePatience: Duration { patience.duration(at: now) }

  /// Closes the session at most `duration` from now, at any phase of its end.
  func limitPatience(_ session: SessionRef, to duration: Duration) {
    let deadline = patience.deadline(
      in: duration, age: session.pointee.bounds.ageDeadline, current: session.pointee.closeDeadline, at: now)
    guard let deadline else { return }
    session.pointee.closeDeadline = deadline
    timers.schedule(session.pointee.timer, at: deadline)
  }

  // MARK: Closed by a peer

  /// Passes on the end of a peer's stream. Returns `false` if the session is gone.
  func settleEnds(_ session: SessionRef) -> Bool {
    for side in [Side.client, .upstream] { settleEnd(session, side) }
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    guard client.pointee.socket.isFinished, upstream.pointee.socket.isFinished else { return true }
    destroy(session)
    return false
  }

  private func settleEnd(_ session: SessionRef, _ side: Side) {
    let end = session.pointee.ends + side.index
    let other = session.pointee.ends + side.other.index
    guard end.pointee.socket.isOpen else { return }
    if end.pointee.socket.readsOn() { watchReset(session) }
    let steps = StreamEnd(of: end, to: other).steps
    if steps.contains(.answer) { end.pointee.socket.sendEnd(through: buffers) }
    if steps.contains(.noteLoss) {
      noteLoss(session, side, end.pointee.socket.failure ?? "the connection was closed")
    }
    if steps.contains(.close) {
      setInterest(session, side, 0)
      end.pointee.socket.close()
    }
    if steps.contains(.passOn) { other.pointee.socket.sendEnd(through: buffers) }
  }

  /// Records that a peer is gone. If it is the upstream and it sent no Close frame, the client
  /// gets one if frames allow it.
  private func noteLoss(_ session: SessionRef, _ side: Side, _ reason: String) {
    let end = session.pointee.ends + side.index
    let other = session.pointee.ends + side.other.index
    if session.pointee.end == nil { session.pointee.end = .lost(side.name, reason) }
    if side == .upstream, !end.pointee.frames.hasClosed, end.pointee.frames.isAtBoundary, end.pointee.held.isEmpty,
      !other.pointee.socket.hasLeft
    {
      enqueue(session, .close(.badGateway, reason: "connection to the service behind the gate lost"), to: .client)
    }
    if end.pointee.socket.failure != nil || other.pointee.isToldToClose || end.pointee.frames.hasClosed,
      let service
    {
      limitPatience(session, to: service.limits.closeTimeout)
    }
  }

  // MARK: Closed by a timer

  func relayTimer(_ session: SessionRef) {
    if let deadline = session.pointee.closeDeadline {
      closeTimer(session, deadline)
      return
    }
    let token = session.pointee.token
    if let limit = session.pointee.bounds.ageDeadline, now >= limit {
      close(session, .timeout, reason: "the session has reached its maximum age")
      return
    }
    var next = session.pointee.bounds.ageDeadline ?? .max
    for side in [Side.client, .upstream] {
      guard let wake = checkSilence(session, side) else { return }
      guard slots.session(token) != nil, session.pointee.closeDeadline == nil else { return }
      next = min(next, wake)
    }
    settle(session)
    guard slots.session(token) != nil, session.pointee.closeDeadline == nil, next < .max else { return }
    timers.schedule(session.pointee.timer, at: max(next, now + 1))
  }

  /// Handles the close deadline. A session that the gate does not close itself, and that is below its maximum age,
  /// gets more time as long as a peer reads what the other one sent before.
  func closeTimer(_ session: SessionRef, _ deadline: Milliseconds) {
    let end = CloseDeadline(
      deadline: deadline, age: session.pointee.bounds.ageDeadline, isClosedByGate: session.pointee.isClosedByGate)
    switch end.decision(at: now) {
    case .wait(let deadline):
      timers.schedule(session.pointee.timer, at: deadline)
    case .extendIfRead where isAnyTaking(session):
      session.pointee.closeDeadline = nil
      limitPatience(session, to: closePatience)
    case .extendIfRead, .cutOff:
      destroy(session)
    }
  }

  /// Asks both peers in any case: each call of `isTaking` notes what was read since the last one.
  private func isAnyTaking(_ session: SessionRef) -> Bool {
    let isTaken = isTaking(session, .client)
    return isTaking(session, .upstream) || isTaken
  }

  /// Starts the timer for a peer that was reset and is still read: the other peer may read nothing of its bytes.
  func watchReset(_ session: SessionRef) {
    if session.pointee.closeDeadline == nil { schedule(session, after: closePatience) }
  }

  /// Returns the last time at which a peer showed that it is alive. Reading pending bytes counts like sending, so a
  /// slow reader is not pinged. For a peer that the gate does not read because the other one is blocked, any
  /// progress in the session counts. Within a frame no Ping can be sent to its receiver, which need not answer before the
  /// end of the message: the bytes of a frame that arrives in parts count until its last one.
  func lastSign(of side: Side, in session: SessionRef) -> Milliseconds {
    let end = session.pointee.ends + side.index
    let isHeard = end.pointee.socket.interest & Readiness.input != 0
    var last = end.pointee.socket.lastHeard
    if !end.pointee.socket.isReset { last = max(last, end.pointee.lastPart) }
    for index in 0..<2 where index == side.index || !isHeard {
      let other = session.pointee.ends + index
      // The kernel need not be asked about a peer that was heard just now.
      guard other.pointee.socket.isOpen, last < now else { continue }
      other.pointee.socket.noteTaking(at: now)
      last = max(last, other.pointee.socket.lastTaken, isHeard ? 0 : other.pointee.socket.lastHeard)
    }
    return last
  }

  /// Returns how long a peer may show no sign of life; `nil` for no limit.
  func patienceWithSilence(of side: Side, in session: SessionRef) -> Milliseconds? {
    let idle = session.pointee.bounds.idle
    guard session.pointee.ends[side.index].socket.isReset else { return idle }
    return min(idle ?? .max, closePatience.milliseconds)
  }

  /// Handles a client that reset its connection while it was not being read. The upstream still gets the client's
  /// bytes as long as it reads them.
  func wasReset(_ session: SessionRef, _ side: Side) {
    session.pointee.ends[side.index].socket.isReset = true
    switch session.pointee.phase {
    case .relay: relayTimer(session)
    case .bridge, .conversation: endpointTimer(session)
    // No client waits for the response.
    case .forward, .connection, .upstreamHandshake, .upgrade: destroy(session)
    default: break
    }
  }

  /// Returns how long a peer has been silent.
  ///
  /// A peer that has closed its sending side cannot answer a Ping: its patience runs from its last bytes, even if the
  /// other peer still sends.
  func silence(of side: Side, in session: SessionRef) -> PeerSilence {
    let end = session.pointee.ends + side.index
    let bounds = session.pointee.bounds
    let hasEnded = end.pointee.socket.hasEnded
    return PeerSilence(
      lastSign: hasEnded ? end.pointee.socket.lastHeard : lastSign(of: side, in: session),
      lastPing: end.pointee.lastPing,
      isHeard: end.pointee.socket.interest & Readiness.input != 0,
      hasEnded: hasEnded,
      patience: hasEnded ? bounds.idle : patienceWithSilence(of: side, in: session),
      pingInterval: bounds.ping)
  }

  /// Pings a silent peer or closes its session. Returns the time of the next check; `nil` if
  /// the session is being closed.
  private func checkSilence(_ session: SessionRef, _ side: Side) -> Milliseconds? {
    let end = session.pointee.ends + side.index
    guard end.pointee.socket.isOpen else { return .max }
    let silence = silence(of: side, in: session)
    switch silence.decision(at: now) {
    case .wait(let next):
      return next
    case .ping(let next):
      end.pointee.lastPing = now
      // A reader that stalls would find all queued Pings when it continues.
      if end.pointee.socket.outbox.isEmpty { enqueue(session, .ping, to: side) }
      return next
    case .expired where end.pointee.socket.isReset && !silence.hasEnded:
      end.pointee.socket.failure = SystemCallError.text(of: ECONNRESET)
      settle(session)
    case .expired:
      let seconds = (silence.patience ?? 0) / 1000
      let peer = side.name.rawValue
      let reason =
        silence.hasEnded
        ? "\(peer) closed its side \(seconds) s ago"
        : "\(silence.isHeard ? "\(peer) silent" : "no progress") for \(seconds) s"
      close(session, .timeout, reason: reason)
    }
    return nil
  }
}

extension StreamEnd {
  fileprivate init(of end: UnsafeMutablePointer<SessionEnd>, to other: UnsafeMutablePointer<SessionEnd>) {
    self.init(
      hasFailed: end.pointee.socket.failure != nil, hasEnded: end.pointee.socket.hasEnded,
      hasSentClose: end.pointee.frames.hasClosed, isToldToClose: end.pointee.isToldToClose,
      isPassedOn: other.pointee.socket.hasSentEnd || other.pointee.socket.endsAfterOutbox)
  }
}
