internal import Glibc
internal import Transport

/// How sessions end, and how the gate notices that they should.
extension EventLoop {
  // MARK: By the gate

  /// Ends an open session with a Close frame to both ends, each between two frames.
  func close(_ session: SessionRef, _ code: CloseCode, reason: String) {
    switch session.pointee.phase {
    case .relay: break
    case .bridge, .conversation:
      closeEndpoint(session, code, reason: reason)
      return
    default:
      return
    }
    // Before all else: who is being seen off with patience, as in a drain, may lose his right meanwhile.
    limitPatience(session, to: patience(with: code))
    guard !session.pointee.isClosedByGate else { return }
    session.pointee.isClosedByGate = true
    if session.pointee.end == nil { session.pointee.end = .closedByGate(code.rawValue, reason: reason) }
    owe(session, .close(code, reason: reason), to: .client)
    owe(session, .close(code, reason: reason), to: .upstream)
    settle(session)
  }

  /// Sends the gate's own frame to `side` now, or as soon as the frame in transit to it has ended.
  private func owe(_ session: SessionRef, _ debt: GateDebt, to side: Side) {
    let target = session.pointee.ends + side.index
    guard target.pointee.link.isOpen, !target.pointee.isToldToClose else { return }
    if case .ping = debt, target.pointee.owed != nil { return }
    target.pointee.owed = debt
    if session.pointee.ends[side.other.index].frames.isAtBoundary { payDebt(session, to: side) }
  }

  func payDebt(_ session: SessionRef, to side: Side) {
    let target = session.pointee.ends + side.index
    guard let debt = target.pointee.owed else { return }
    target.pointee.owed = nil
    // The other end's Close went through: nothing may follow it.
    if session.pointee.ends[side.other.index].frames.hasClosed {
      target.pointee.isToldToClose = true
      return
    }
    let mask: UInt32? = side == .upstream ? random.next() : nil
    let frame: [UInt8]
    switch debt {
    case .ping:
      frame = GateFrame.ping(token: session.pointee.pingToken, mask: mask)
      target.pointee.pongsDue += 1
    case .close(let code, let reason):
      frame = GateFrame.close(code.rawValue, reason: reason, mask: mask)
      target.pointee.isToldToClose = true
    }
    frame.withUnsafeBytes { target.pointee.link.send($0, through: window) }
  }

  /// How long an end may take to receive what is pending and to answer a Close. During a drain it is the drain's time
  /// and a moment more, so that a session that is left at the deadline is counted before it is cut off.
  var closePatience: Duration {
    guard let drain else { return service?.limits.closeTimeout ?? EngineLimits().closeTimeout }
    return .milliseconds(Int(max(drain.deadline, now) - now) + 1000)
  }

  /// How long an end has when the gate closes its session with `code`. Who has lost his right is not waited for as a
  /// drain waits: he would be heard all the while.
  func patience(with code: CloseCode) -> Duration {
    code == .revoked ? lostRightPatience : closePatience
  }

  private var lostRightPatience: Duration {
    let limits = service?.limits ?? EngineLimits()
    return min(limits.closeTimeout, limits.lostRightTimeout)
  }

  /// Ends the session no later than `duration` from now, and no later than a session that has reached its greatest age.
  func limitPatience(_ session: SessionRef, to duration: Duration) {
    var deadline = now + duration.milliseconds
    if let age = session.pointee.bounds.ageDeadline {
      deadline = min(deadline, max(now, age) + lostRightPatience.milliseconds)
    }
    if let earlier = session.pointee.closeDeadline, earlier <= deadline { return }
    session.pointee.closeDeadline = deadline
    timers.schedule(session.pointee.timer, at: deadline)
  }

  // MARK: By the ends

  /// Passes on that an end will send no more. `false` if the session is gone.
  func settleEnds(_ session: SessionRef) -> Bool {
    for side in [Side.client, .upstream] { settleEnd(session, side) }
    let client = session.pointee.ends
    let upstream = session.pointee.ends + 1
    guard client.pointee.link.isSpent, upstream.pointee.link.isSpent else { return true }
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

  /// An end is gone. If that is the upstream and it did not take its leave, the client is told, where frames allow.
  private func noteLoss(_ session: SessionRef, _ side: Side, _ reason: String) {
    let end = session.pointee.ends + side.index
    let other = session.pointee.ends + side.other.index
    if session.pointee.end == nil { session.pointee.end = .lost(side.name, reason) }
    if side == .upstream, !end.pointee.frames.hasClosed, end.pointee.frames.isAtBoundary, end.pointee.held.isEmpty {
      owe(session, .close(.badGateway, reason: "the service behind the gate went away"), to: .client)
    }
    if end.pointee.link.failure != nil || other.pointee.isToldToClose || end.pointee.frames.hasClosed,
      let service
    {
      limitPatience(session, to: service.limits.closeTimeout)
    }
  }

  // MARK: By the clock

  func relayTimer(_ session: SessionRef) {
    if let deadline = session.pointee.closeDeadline {
      closeTimer(session, deadline)
      return
    }
    let token = session.pointee.token
    if let limit = session.pointee.bounds.ageDeadline, now >= limit {
      close(session, .timeout, reason: "the session has reached its greatest age")
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

  /// A session that is ending may do so until `deadline`, and longer for as long as an end takes what the other one had sent
  /// before: not behind a Close of the gate's own, nor beyond its greatest age.
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

  /// Has the timer look at an end that was reset and is read on: the other one may take nothing of what it had sent.
  func watchReset(_ session: SessionRef) {
    if session.pointee.closeDeadline == nil { schedule(session, after: closePatience) }
  }

  /// Ends the session of an end that has said its last word too long ago, as `checkSilence` does.
  private func checkDeparture(_ session: SessionRef, _ side: Side, _ bounds: RelayBounds) -> Milliseconds? {
    guard let idle = bounds.idle else { return .max }
    let limit = session.pointee.ends[side.index].link.lastHeard + idle
    guard now >= limit else { return limit }
    close(session, .timeout, reason: "\(side.name.rawValue) left \(idle / 1000) s ago")
    return nil
  }

  /// When an end last showed that it lives. To take what waits for it is as good as to say something: a reader that
  /// stalls is not pinged. An end that is not listened to, because the other one does not take what it sent, is excused
  /// for as long as anything moves in the session.
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

  /// How long an end may give no sign of life; `nil` for ever.
  func patienceWithSilence(of side: Side, in session: SessionRef) -> Milliseconds? {
    let idle = session.pointee.bounds.idle
    guard session.pointee.ends[side.index].link.isReset else { return idle }
    return min(idle ?? .max, closePatience.milliseconds)
  }

  /// A client has reset its connection while it was not read. The upstream is still given what it sent, for as long as it
  /// takes it.
  func wasReset(_ session: SessionRef, _ side: Side) {
    session.pointee.ends[side.index].link.isReset = true
    switch session.pointee.phase {
    case .relay: relayTimer(session)
    case .bridge, .conversation: endpointTimer(session)
    // The client does not wait for the answer.
    case .forward: destroy(session)
    default: break
    }
  }

  /// Pings a silent end, or ends its session; says when to look again, `nil` if the session is being closed.
  private func checkSilence(_ session: SessionRef, _ side: Side) -> Milliseconds? {
    let end = session.pointee.ends + side.index
    let bounds = session.pointee.bounds
    guard end.pointee.link.isOpen else { return .max }
    // It cannot answer a Ping any more, so its patience runs from its last word, whatever the other end still has to say.
    if end.pointee.link.hasEnded { return checkDeparture(session, side, bounds) }
    let isHeard = end.pointee.link.interest & Readiness.input != 0
    let heard = lastSign(of: side, in: session)
    let idle = patienceWithSilence(of: side, in: session)
    if let idle, now >= heard + idle {
      if end.pointee.link.isReset {
        end.pointee.link.failure = SystemCallError.text(of: ECONNRESET)
        settle(session)
      } else {
        let reason = isHeard ? "\(side.name.rawValue) silent" : "nothing has moved"
        close(session, .timeout, reason: "\(reason) for \(idle / 1000) s")
      }
      return nil
    }
    var next = idle.map { heard + $0 } ?? .max
    if let ping = bounds.ping, !isHeard {
      // Its answer would not be read.
      next = min(next, now + ping)
    } else if let ping = bounds.ping {
      let last = max(heard, end.pointee.lastPing)
      if now >= last + ping {
        end.pointee.lastPing = now
        // A reader that stalls would find them all when it wakes up.
        if end.pointee.link.outbox.isEmpty { owe(session, .ping, to: side) }
        next = min(next, now + ping)
      } else {
        next = min(next, last + ping)
      }
    }
    return next
  }
}
