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
    limitPatience(session, to: patience(with: code))
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
    guard target.pointee.link.isOpen, !target.pointee.isToldToClose else { return }
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
    frame.withUnsafeBytes { target.pointee.link.send($0, through: window) }
  }

  /// How long a peer has to read its pending bytes and to answer a Close frame. While the loop drains, it
  /// is the rest of the drain plus a second, so that the drain counts the remaining sessions at its
  /// deadline before they are closed.
  var closePatience: Duration {
    guard let drain else { return service?.limits.closeTimeout ?? EngineLimits().closeTimeout }
    return .milliseconds(Int(max(drain.deadline, now) - now) + 1000)
  }

  /// How long a peer has when the gate closes its session with `code`. A revoked session gets no extra time during a
  /// drain, because its input would be relayed meanwhile.
  func patience(with code: CloseCode) -> Duration {
    code == .revoked ? lostRightPatience : closePatience
  }

  private var lostRightPatience: Duration {
    let limits = service?.limits ?? EngineLimits()
    return min(limits.closeTimeout, limits.lostRightTimeout)
  }

  /// Ends the session at most `duration` from now. A session over its maximum age gets no more
  /// than `lostRightPatience`.
  func limitPatience(_ session: SessionRef, to duration: Duration) {
    var deadline = now + duration.milliseconds
    if let age = session.pointee.bounds.ageDeadline {
      deadline = min(deadline, max(now, age) + lostRightPatience.milliseconds)
    }
    if let earlier = session.pointee.closeDeadline, earlier <= deadline { return }
    session.pointee.closeDeadline = deadline
    timers.schedule(session.pointee.timer, at: deadline)
  }

  // MARK: Closed by a peer

  /// Passes on the end of a peer's stream. Returns `false` if the session is gone.
  func settleEnds(_ session: SessionRef) -> Bool {
    for side in [Side.client, .upstream] { settleEnd(session, side) }
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    guard client.pointee.link.isFinished, upstream.pointee.link.isFinished else { return true }
    destroy(session)
    return false
  }

  private func settleEnd(_ session: SessionRef, _ side: Side) {
    let end = session.pointee.ends + side.index
    let other = session.pointee.ends + side.other.index
    guard end.pointee.link.isOpen else { return }
    if end.pointee.link.readsOn() { watchReset(session) }
    if let failure = end.pointee.link.failure {
      noteLoss(session, side, failure)
      setInterest(session, side, 0)
      end.pointee.link.close()
      other.pointee.link.sendEnd(through: window)
      return
    }
    let saidGoodbye = end.pointee.frames.hasClosed || end.pointee.link.hasEnded
    if end.pointee.isToldToClose && saidGoodbye { end.pointee.link.sendEnd(through: window) }
    guard end.pointee.link.hasEnded, !other.pointee.link.hasSentEnd, !other.pointee.link.endsAfterOutbox else { return }
    noteLoss(session, side, "the connection was closed")
    other.pointee.link.sendEnd(through: window)
  }

  /// Records that a peer is gone. If it is the upstream and it sent no Close frame, the client
  /// gets one if frames allow it.
  private func noteLoss(_ session: SessionRef, _ side: Side, _ reason: String) {
    let end = session.pointee.ends + side.index
    let other = session.pointee.ends + side.other.index
    if session.pointee.end == nil { session.pointee.end = .lost(side.name, reason) }
    if side == .upstream, !end.pointee.frames.hasClosed, end.pointee.frames.isAtBoundary, end.pointee.held.isEmpty {
      enqueue(session, .close(.badGateway, reason: "connection to the service behind the gate lost"), to: .client)
    }
    if end.pointee.link.failure != nil || other.pointee.isToldToClose || end.pointee.frames.hasClosed,
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
    guard now >= deadline else {
      timers.schedule(session.pointee.timer, at: deadline)
      return
    }
    let isTooOld = session.pointee.bounds.ageDeadline.map { now >= $0 } ?? false
    let isTaken = isTaking(session, .client)
    guard isTaking(session, .upstream) || isTaken, !isTooOld, !session.pointee.isClosedByGate else {
      destroy(session)
      return
    }
    session.pointee.closeDeadline = nil
    limitPatience(session, to: closePatience)
  }

  /// Starts the timer for a peer that was reset and is still read: the other peer may read nothing of its bytes.
  func watchReset(_ session: SessionRef) {
    if session.pointee.closeDeadline == nil { schedule(session, after: closePatience) }
  }

  /// Closes the session of a peer that has ended its stream too long ago; otherwise returns the
  /// deadline. Like `checkSilence`.
  private func checkDeparture(_ session: SessionRef, _ side: Side, _ bounds: RelayBounds) -> Milliseconds? {
    guard let idle = bounds.idle else { return .max }
    let limit = session.pointee.ends[side.index].link.lastHeard + idle
    guard now >= limit else { return limit }
    close(session, .timeout, reason: "\(side.name.rawValue) closed its side \(idle / 1000) s ago")
    return nil
  }

  /// Returns the last time at which a peer showed that it is alive. Reading pending bytes counts like sending, so a
  /// slow reader is not pinged. For a peer that the gate does not read because the other one is blocked, any
  /// progress in the session counts.
  func lastSign(of side: Side, in session: SessionRef) -> Milliseconds {
    let end = session.pointee.ends + side.index
    let isHeard = end.pointee.link.interest & Readiness.input != 0
    var last = end.pointee.link.lastHeard
    for index in 0..<2 where index == side.index || !isHeard {
      let other = session.pointee.ends + index
      guard other.pointee.link.isOpen else { continue }
      other.pointee.link.noteTaking(at: now)
      last = max(last, other.pointee.link.lastTaken, isHeard ? 0 : other.pointee.link.lastHeard)
    }
    return last
  }

  /// Returns how long a peer may show no sign of life; `nil` for no limit.
  func patienceWithSilence(of side: Side, in session: SessionRef) -> Milliseconds? {
    let idle = session.pointee.bounds.idle
    guard session.pointee.ends[side.index].link.isReset else { return idle }
    return min(idle ?? .max, closePatience.milliseconds)
  }

  /// Handles a client that reset its connection while it was not being read. The upstream still gets the client's
  /// bytes as long as it reads them.
  func wasReset(_ session: SessionRef, _ side: Side) {
    session.pointee.ends[side.index].link.isReset = true
    switch session.pointee.phase {
    case .relay: relayTimer(session)
    case .bridge, .conversation: endpointTimer(session)
    // No client waits for the response.
    case .forward: destroy(session)
    default: break
    }
  }

  /// Pings a silent peer or closes its session. Returns the time of the next check; `nil` if
  /// the session is being closed.
  private func checkSilence(_ session: SessionRef, _ side: Side) -> Milliseconds? {
    let end = session.pointee.ends + side.index
    let bounds = session.pointee.bounds
    guard end.pointee.link.isOpen else { return .max }
    // The peer cannot answer a Ping any more, so its timeout runs from its last bytes, even if
    // the other peer still sends.
    if end.pointee.link.hasEnded { return checkDeparture(session, side, bounds) }
    let isHeard = end.pointee.link.interest & Readiness.input != 0
    let heard = lastSign(of: side, in: session)
    let idle = patienceWithSilence(of: side, in: session)
    if let idle, now >= heard + idle {
      if end.pointee.link.isReset {
        end.pointee.link.failure = SystemCallError.text(of: ECONNRESET)
        settle(session)
      } else {
        let reason = isHeard ? "\(side.name.rawValue) silent" : "no progress"
        close(session, .timeout, reason: "\(reason) for \(idle / 1000) s")
      }
      return nil
    }
    var next = idle.map { heard + $0 } ?? .max
    if let ping = bounds.ping, !isHeard {
      // The Pong would not be read.
      next = min(next, now + ping)
    } else if let ping = bounds.ping {
      let last = max(heard, end.pointee.lastPing)
      if now >= last + ping {
        end.pointee.lastPing = now
        // A reader that stalls would find all queued Pings when it continues.
        if end.pointee.link.outbox.isEmpty { enqueue(session, .ping, to: side) }
        next = min(next, now + ping)
      } else {
        next = min(next, last + ping)
      }
    }
    return next
  }
}
