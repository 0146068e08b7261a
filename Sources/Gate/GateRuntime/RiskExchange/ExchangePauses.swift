public import AppAttest

/// Which developer keys and hosts are asked now: a state machine with a clock and randomness from outside.
///
/// - A 401 stops every exchange of its developer key. After a pause one exchange is tried, and each further 401 makes
///   the pause longer.
/// - `Retry-After` pauses the host for that key. So does the third exchange in a row without an answer, shortly at first.
///   Other failures pause nothing, since each receipt backs off by itself: receipts that always fail must not keep the
///   others waiting. Any other answer ends a pause.
public struct ExchangePauses: Sendable {
  /// The bounds of the pauses after 401: the first, and the greatest.
  static let unauthorized = (first: Duration.seconds(10 * 60), greatest: Duration.seconds(86400))
  /// The bounds of full jitter for a host.
  static let absent = (first: Duration.seconds(2), greatest: Duration.seconds(60))
  /// The greatest `Retry-After` that is honoured for a host.
  static let longestRetryAfter = Duration.seconds(3600)
  /// The number of exchanges in a row without an answer, and of failures of any kind, after which a host counts as
  /// failing.
  static let failuresOfFailing = (absent: 3, any: 20)

  /// A host as one developer key asks it.
  public struct Destination: Sendable, Hashable {
    public let key: DeveloperKey.Name
    public let environment: AttestEnvironment

    public init(_ key: DeveloperKey.Name, _ environment: AttestEnvironment) {
      (self.key, self.environment) = (key, environment)
    }
  }

  /// A change of state, for logs.
  public enum Change: Sendable, Hashable {
    case stopped(DeveloperKey.Name, for: Duration, clockAhead: Duration?)
    case resumed(DeveloperKey.Name)
    case failing(Destination, reason: String)
    case recovered(Destination)
  }

  private struct Pause {
    var strikes = 0
    /// The last failures without an answer.
    var absences = 0
    var isReported = false
    /// By the clock that never jumps.
    var end = Duration.zero
    /// The end of the wait that the service asked for.
    var requestedEnd = Duration.zero
  }

  private var keys: [DeveloperKey.Name: Pause] = [:]
  private var hosts: [Destination: Pause] = [:]

  public init() {}

  /// The developer keys that the service refuses.
  public var stopped: Set<DeveloperKey.Name> { Set(keys.keys) }

  /// Returns the pauses that outlast a reload of the settings: those that `Retry-After` asked for. New settings may mend
  /// what made the others, so that refused keys and hosts without an answer are tried at once.
  public func requested(at uptime: Duration) -> ExchangePauses {
    var kept = ExchangePauses()
    kept.hosts = hosts.compactMapValues { pause in
      pause.requestedEnd > uptime ? Pause(end: pause.requestedEnd, requestedEnd: pause.requestedEnd) : nil
    }
    return kept
  }

  /// Returns when `destination` may be asked, if that is after `uptime`; otherwise `nil`.
  public func end(of destination: Destination, at uptime: Duration) -> Duration? {
    let end = max(keys[destination.key]?.end ?? .zero, hosts[destination]?.end ?? .zero)
    return end > uptime ? end : nil
  }

  /// Notes what an exchange with `destination` came to. `random`: 0 to 1.
  public mutating func note(
    _ judgement: Judgement, of destination: Destination, at uptime: Duration, random: Double
  ) -> [Change] {
    switch judgement {
    case .expired, .damaged: return []
    case .unauthorized(let clockAhead): return stop(destination.key, at: uptime, random, clockAhead)
    case .renewed, .notYet, .refused, .noData:
      var changes: [Change] = []
      if keys.removeValue(forKey: destination.key) != nil { changes.append(.resumed(destination.key)) }
      if let pause = hosts.removeValue(forKey: destination), pause.isReported {
        changes.append(.recovered(destination))
      }
      return changes
    case .busy(let status, let retryAfter):
      return fail(destination, at: uptime, random, "status \(status)", isAbsence: false, retryAfter)
    case .unusable(let fault):
      return fail(destination, at: uptime, random, "\(fault)", isAbsence: fault.isAbsence, nil)
    }
  }

  private mutating func stop(
    _ key: DeveloperKey.Name, at uptime: Duration, _ random: Double, _ clockAhead: Duration?
  ) -> [Change] {
    var pause = keys[key] ?? Pause()
    let bound = Self.unauthorized.first * (1 << min(pause.strikes, 16))
    // Three quarters to the whole, so that the gates of a fleet do not ask together.
    let wait = min(bound, Self.unauthorized.greatest) * (0.75 + 0.25 * random)
    pause.strikes = min(pause.strikes + 1, 1 << 20)
    pause.end = uptime + wait
    keys[key] = pause
    return pause.strikes == 1 ? [.stopped(key, for: wait, clockAhead: clockAhead)] : []
  }

  private mutating func fail(
    _ destination: Destination, at uptime: Duration, _ random: Double, _ reason: String, isAbsence: Bool,
    _ retryAfter: Duration?
  ) -> [Change] {
    var pause = hosts[destination] ?? Pause()
    pause.strikes = min(pause.strikes + 1, 1 << 20)
    pause.absences = isAbsence ? min(pause.absences + 1, 1 << 20) : 0
    let asked = min(max(retryAfter ?? .zero, .zero), Self.longestRetryAfter)
    let further = pause.absences - Self.failuresOfFailing.absent
    pause.requestedEnd = uptime + asked
    pause.end = uptime + max(asked, further < 0 ? .zero : ExchangeSchedule.jitter(Self.absent, further, random))
    let isFailing = further >= 0 || pause.strikes >= Self.failuresOfFailing.any
    defer { hosts[destination] = pause }
    guard isFailing, !pause.isReported else { return [] }
    pause.isReported = true
    return [.failing(destination, reason: reason)]
  }
}
