internal import Transport

/// A loop that is on its way out: no new connections, and the old ones are asked to leave.
struct Drain {
  let code: CloseCode
  let reason: String
  let deadline: Milliseconds
  /// Each is called once, on the loop's thread, when the last session is gone or the deadline has passed.
  var waiting: [@Sendable (_ remaining: Int) -> Void] = []
}

extension EventLoop {
  /// Closes every session: open ones with a Close frame between two frames, waiting ones with their answer.
  ///
  /// A loop that drains already keeps its first deadline; a second caller is told of the end as well.
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
    case .head where session.pointee.exchange?.inbox.isEmpty ?? true:
      bidFarewell(session)
    case .head, .body, .decision, .answer, .connection, .upstreamHandshake, .upgrade, .forward:
      session.pointee.exchange?.closesAfterAnswer = true
    case .farewell:
      break
    }
  }

  /// Reports that the loop is empty, if it is and a caller waits for that.
  func drained() {
    if drain != nil, sessionCount == 0 { tellDrained() }
  }

  /// A session has just opened: while the loop drains it is closed like those that it found open.
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
