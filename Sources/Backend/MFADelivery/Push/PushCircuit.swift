/// When the next request may go to a push service: what its failures so far say, without a clock.
struct PushCircuit: Sendable {
  /// The first pause after a failure of the service. It doubles with each further failure in a row.
  let pause: Duration
  /// The longest pause, unless the service asks for a longer one.
  let longestPause: Duration
  /// How long a service that refuses the credentials is not asked.
  let stop: Duration

  private var failures = 0
  private var pausedUntil: ContinuousClock.Instant?
  /// Why the service is not asked: it refuses the credentials.
  private(set) var fault: String?

  init(pause: Duration, longestPause: Duration, stop: Duration) {
    self.pause = pause
    self.longestPause = longestPause
    self.stop = stop
  }

  enum Admission: Sendable, Hashable {
    case open
    case paused(until: ContinuousClock.Instant)
    case stopped
  }

  func admission(at now: ContinuousClock.Instant) -> Admission {
    guard let pausedUntil, now < pausedUntil else { return .open }
    return fault == nil ? .paused(until: pausedUntil) : .stopped
  }

  mutating func succeed() {
    failures = 0
    pausedUntil = nil
    fault = nil
  }

  /// Pauses after a temporary failure of the service.
  ///
  /// - Parameters:
  ///   - requested: the pause that the service asks for.
  ///   - jitter: 0.75 to 1.25.
  mutating func fail(at now: ContinuousClock.Instant, requested: Duration?, jitter: Double) {
    failures = min(failures + 1, 20)
    let own = min(pause * (1 << (failures - 1)), longestPause) * jitter
    let end = now + max(own, requested ?? .zero)
    pausedUntil = max(pausedUntil ?? end, end)
  }

  /// Stops after a refusal of the credentials. After `stop`, the next notification is a trial.
  mutating func refuse(_ reason: String, at now: ContinuousClock.Instant) {
    fault = reason
    pausedUntil = now + stop
  }
}
