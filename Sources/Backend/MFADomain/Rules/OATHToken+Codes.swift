internal import ByteCoding
internal import OneTimePasswords

extension OATHToken {
  /// How many counters of HOTP are compared from the next one on (RFC 4226, section 7.4): codes that were shown and not
  /// sent. TOTP compares the step of this clock and that of the token's clock, and one step to either side of both.
  static let lookAhead: Int64 = 5
  /// How far two codes in a row are looked for: counters ahead, or steps to either side.
  public static let resyncReach: Int64 = 1000

  /// The counter whose code is `guess`; `nil` if there is none that may be accepted.
  ///
  /// All candidates are compared, so that the time does not reveal the counter.
  func match(_ guess: String, _ secret: [UInt8], at now: Timestamp) -> Int64? {
    match([guess], secret, in: candidates(at: now), from: next)
  }

  /// Whether `guess` is a code that was spent and would otherwise be accepted now, for the history.
  func wasSpent(_ guess: String, _ secret: [UInt8], at now: Timestamp) -> Bool {
    switch kind {
    case .totp: match([guess], secret, in: candidates(at: now), from: 0) != nil
    case .hotp: match([guess], secret, in: [max(0, next - Self.lookAhead)...max(0, next - 1)], from: 0) != nil
    }
  }

  /// Accepts the code of `counter`: it and all earlier ones are spent, and the drift follows it (RFC 6238, section 6).
  ///
  /// No delay makes a code newer, so a newer one shows the clock of the token at once. An older one may have been typed
  /// late: the clock is slow only as far as two codes in a row were older.
  mutating func accept(_ counter: Int64, at now: Timestamp) {
    if kind == .totp {
      let distance = counter - step(at: now)
      let last = lastUsedAt.map { next - 1 - step(at: $0) } ?? drift
      drift = distance >= drift ? distance : min(drift, max(distance, last))
    }
    next = counter + 1
    lastUsedAt = now
  }

  /// Accepts the second of two codes in a row, which show the clock of the token whatever it was before.
  mutating func resynchronise(to counter: Int64, at now: Timestamp) {
    accept(counter, at: now)
    if kind == .totp { drift = counter - step(at: now) }
  }

  /// The counter of the second of two codes in a row, looked for in a wide range (RFC 4226, section 7.4); `nil` if they
  /// are not found.
  func resynchronisation(_ first: String, _ second: String, _ secret: [UInt8], at now: Timestamp) -> Int64? {
    let range: ClosedRange<Int64>
    switch kind {
    case .hotp: range = next...next + Self.resyncReach
    case .totp:
      let current = step(at: now)
      range = max(0, current - Self.resyncReach)...current + Self.resyncReach
    }
    return match([first, second], secret, in: [range], from: next).map { $0 + 1 }
  }

  /// Whether a code was spent that is newer than all that `resynchronisation` compares, which then finds none.
  func isSpentAhead(at now: Timestamp) -> Bool { kind == .totp && next > step(at: now) + Self.resyncReach }

  private func candidates(at now: Timestamp) -> [ClosedRange<Int64>] {
    switch kind {
    case .hotp: return [next...next + Self.lookAhead - 1]
    case .totp:
      // A clock that was wrong may have been set right, and late codes must not move the window away from it.
      return (drift == 0 ? [0] : [0, drift]).map { distance in
        let middle = max(0, step(at: now) + distance)
        return max(0, middle - 1)...middle + 1
      }
    }
  }

  private func step(at now: Timestamp) -> Int64 { max(0, now.seconds) / Int64(period) }

  /// The first counter of `ranges`, not below `least`, from which the codes are `guesses`.
  private func match(
    _ guesses: [String], _ secret: [UInt8], in ranges: [ClosedRange<Int64>], from least: Int64
  ) -> Int64? {
    var found: Int64?
    for counter in ranges.joined() {
      let isEqual = zip(guesses, counter...).allSatisfy { guess, counter in
        constantTimeEqual(
          Array(password.code(secret: secret, counter: UInt64(clamping: counter)).utf8), Array(guess.utf8))
      }
      if isEqual, counter >= least, found == nil { found = counter }
    }
    return found
  }
}

extension TOTPFactor {
  /// The step whose code is `guess`: by this clock or by the remembered one of the authenticator, but none up to
  /// `lastStep` (or up to `least`).
  func match(_ guess: String, _ secret: [UInt8], at now: Timestamp, after least: Int64? = nil) -> Int64? {
    let least = least ?? lastStep
    let near = parameters.matchingStep(guess, secret, at: now, after: least)
    // A clock that was wrong may have been set right.
    guard drift != 0 else { return near }
    let far = parameters.matchingStep(
      guess, secret, at: now.advanced(by: .seconds(drift * Int64(parameters.period))), after: least)
    return near ?? far
  }

  /// Accepts the code of `step`: it and all earlier ones are spent. A drift that is no mere delay is remembered.
  mutating func accept(_ step: Int64, at now: Timestamp) {
    lastStep = step
    let distance = step - parameters.step(at: now)
    drift = abs(distance) > 1 ? distance : 0
  }

  /// The step of the second of two codes in a row, looked for to either side; `nil` if they are not found.
  func resynchronisation(_ first: String, _ second: String, _ secret: [UInt8], at now: Timestamp) -> Int64? {
    let current = parameters.step(at: now)
    guard !isSpentAhead(at: now) else { return nil }
    for step in max(lastStep + 1, current - OATHToken.resyncReach, 0)...current + OATHToken.resyncReach
    where parameters.code(secret, step: step) == first && parameters.code(secret, step: step + 1) == second {
      return step + 1
    }
    return nil
  }

  /// Whether a code was spent that is newer than all that `resynchronisation` compares, which then finds none.
  func isSpentAhead(at now: Timestamp) -> Bool { lastStep >= parameters.step(at: now) + OATHToken.resyncReach }
}
