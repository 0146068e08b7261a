internal import Transport

/// A loop that is on its way out: no new connections, and the old ones are asked to leave.
struct Drain {
  let code: CloseCode
  let reason: String
  let deadline: Milliseconds
  /// Called once, on the loop's thread, when the last session is gone or the deadline has passed.
  var finished: (@Sendable (_ remaining: Int) -> Void)?
}

extension EventLoop {
  /// Closes every session: open ones with a Close frame between two frames, waiting ones with the answer they wait for.
  func startDraining(_ drain: Drain) {
    guard self.drain == nil else { return }
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
    case .handshake:
      destroy(session)
    case .head where session.pointee.exchange?.inbox.isEmpty ?? true:
      bidFarewell(session)
    case .head, .body, .decision, .answer, .connection, .upstreamHandshake, .upgrade:
      session.pointee.exchange?.closesAfterAnswer = true
    case .farewell:
      break
    }
  }

  /// Tells that the loop is empty, if it is and somebody wants to know.
  func drained() {
    guard let finished = drain?.finished, sessionCount == 0 else { return }
    drain?.finished = nil
    finished(0)
  }

  fileprivate func drainExpired() {
    guard let finished = drain?.finished else { return }
    drain?.finished = nil
    finished(sessionCount)
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
    loop.drainExpired()
    loop.remove(self)
  }
}
