internal import Transport

/// The state of a draining loop: it accepts no connections and asks the open ones to close.
struct Drain {
  let code: CloseCode
  let reason: String
  let deadline: Milliseconds
  /// Callbacks that each run once, on the loop's thread, when the last session has ended or the deadline has passed.
  var waiting: [@Sendable (_ remaining: Int) -> Void] = []
}

extension EventLoop {
  /// Closes every session: open WebSockets with a Close frame between two frames, requests in
  /// progress with their response.
  ///
  /// A loop that is already draining keeps the code and deadline of the first call. The
  /// callbacks of a later call run too.
  func startDraining(_ drain: Drain) {
    guard self.drain == nil else {
      self.drain?.waiting += drain.waiting
      if now >= self.drain?.deadline ?? now { tellDrained() } else { drained() }
      return
    }
    self.drain = drain
    for slot in 0..<slots.end {
      guard let token = slots.token(in: slot), let session = slots.session(token) else { continue }
      leave(session, drain)
    }
    let alarm = DrainAlarm()
    insert(alarm)
    alarm.schedule(in: self, at: drain.deadline)
    drained()
  }

  private func leave(_ session: SessionRef, _ drain: Drain) {
    switch session.pointee.phase {
    case .relay, .bridge, .conversation:
      close(session, drain.code, reason: drain.reason)
    case .preface, .handshake:
      destroy(session)
    case .head where session.pointee.http?.inbox.isEmpty ?? true:
      beginLingeringClose(session)
    case .head, .body, .decision, .answer, .connection, .upstreamHandshake, .upgrade, .forward:
      session.pointee.http?.request.closesAfterAnswer = true
    case .lingeringClose:
      break
    }
  }

  /// Runs the drain callbacks if the loop is draining and has no sessions left.
  func drained() {
    if drain != nil, sessionCount == 0 { tellDrained() }
  }

  /// Closes a session that has just opened if the loop is draining.
  func closeIfDraining(_ session: SessionRef) {
    if let drain { close(session, drain.code, reason: drain.reason) }
  }

  fileprivate func tellDrained() {
    let waiting = drain?.waiting ?? []
    drain?.waiting = []
    for finished in waiting { finished(sessionCount) }
  }
}

/// Wakes a draining loop at its deadline.
private final class DrainAlarm: LoopChannel {
  private let timer = UnsafeMutablePointer<TimerNode>.allocate(capacity: 1)

  override init() { timer.initialize(to: TimerNode()) }
  deinit { timer.deallocate() }

  func schedule(in loop: EventLoop, at deadline: Milliseconds) {
    timer.pointee.slot = token.slot
    loop.timers.schedule(timer, at: deadline)
  }

  override func expired(in loop: EventLoop) {
    loop.tellDrained()
    loop.remove(self)
  }

  override func abandon(in loop: EventLoop) {
    loop.timers.cancel(timer)
    loop.remove(self)
  }
}
