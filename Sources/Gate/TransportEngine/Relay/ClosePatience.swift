internal import Transport

/// How long the peers of a session that is being closed may take to read pending bytes and to close.
struct ClosePatience {
  /// How long peers have to answer a Close frame.
  var closeTimeout: Duration
  /// The same for a session whose client has lost its right to be here.
  var lostRightTimeout: Duration
  /// When the drain of the loop ends; `nil` while it does not drain.
  var drainDeadline: Milliseconds?

  /// How long a peer has. While the loop drains, it is the rest of the drain plus a second, so that the drain counts
  /// the remaining sessions at its deadline before they are closed.
  func duration(at now: Milliseconds) -> Duration {
    guard let drainDeadline else { return closeTimeout }
    return .milliseconds(Int(max(drainDeadline, now) - now) + 1000)
  }

  /// How long a peer has when the gate closes its session with `code`. A revoked session gets no extra time during a
  /// drain, because its input would be relayed meanwhile.
  func duration(with code: CloseCode, at now: Milliseconds) -> Duration {
    code == .revoked ? afterLostRight : duration(at: now)
  }

  private var afterLostRight: Duration { min(closeTimeout, lostRightTimeout) }

  /// Returns the new deadline of a session that may take `duration` from now; `nil` if `current` is as early.
  ///
  /// A session over its maximum age, whose deadline is `age`, gets no more time than one that has lost its right.
  func deadline(
    in duration: Duration, age: Milliseconds?, current: Milliseconds?, at now: Milliseconds
  ) -> Milliseconds? {
    var deadline = now + duration.milliseconds
    if let age { deadline = min(deadline, max(now, age) + afterLostRight.milliseconds) }
    if let current, current <= deadline { return nil }
    return deadline
  }
}

/// What the close deadline of a session means when its timer fires.
struct CloseDeadline {
  var deadline: Milliseconds
  /// When the session reaches its maximum age; `nil` for never.
  var age: Milliseconds?
  var isClosedByGate: Bool

  enum Decision: Equatable {
    case wait(until: Milliseconds)
    /// Gives more time if a peer still reads what the other one sent before; otherwise cuts the session off.
    case extendIfRead
    case cutOff
  }

  func decision(at now: Milliseconds) -> Decision {
    guard now >= deadline else { return .wait(until: deadline) }
    let isTooOld = age.map { now >= $0 } ?? false
    return isClosedByGate || isTooOld ? .cutOff : .extendIfRead
  }
}
