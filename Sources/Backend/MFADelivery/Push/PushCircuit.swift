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
  /// When the result of the trial after a stop is waited for no longer.
  private var trialEnds: ContinuousClock.Instant?
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

  /// How long a trial may take.
  private static let trial = Duration.seconds(30)
  /// How often the others look whether a trial is over.
  private static let look = Duration.seconds(1)

  /// Whether a request may be sent. After a stop one is a trial, and the others wait for its result.
  mutating func admission(at now: ContinuousClock.Instant) -> Admission {
    if let pausedUntil, now < pausedUntil { return fault == nil ? .paused(until: pausedUntil) : .stopped }
    guard fault != nil else { return .open }
    if let trialEnds, now < trialEnds { return .paused(until: min(trialEnds, now + Self.look)) }
    trialEnds = now + Self.trial
    return .open
  }

  /// The service has judged a notification, so that it accepts the credentials.
  mutating func succeed() {
    failures = 0
    pausedUntil = nil
    trialEnds = nil
    fault = nil
  }

  /// Pauses after a temporary failure of the service. That of a trial says nothing against the credentials.
  ///
  /// - Parameters:
  ///   - requested: the pause that the service asks for.
  ///   - jitter: 0.75 to 1.25.
  mutating func fail(at now: ContinuousClock.Instant, requested: Duration?, jitter: Double) {
    if let pausedUntil, fault != nil {
      // Of a request from before the stop.
      guard now >= pausedUntil else { return }
      (fault, trialEnds) = (nil, nil)
    }
    failures = min(failures + 1, 20)
    let own = min(pause * (1 << (failures - 1)), longestPause) * jitter
    let end = now + max(own, requested ?? .zero)
    pausedUntil = max(pausedUntil ?? end, end)
  }

  /// Stops after a refusal of the credentials. After `stop`, the next notification is a trial.
  mutating func refuse(_ reason: String, at now: ContinuousClock.Instant) {
    fault = reason
    trialEnds = nil
    pausedUntil = now + stop
  }
}
