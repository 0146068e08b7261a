internal import Transport

/// How long a peer of an open session has shown no sign of life, and what follows from it.
struct PeerSilence {
  /// When the peer last sent something or read pending bytes.
  var lastSign: Milliseconds
  /// When the gate last sent this peer a Ping.
  var lastPing: Milliseconds
  /// The gate reads this peer now. It does not while the other peer is blocked.
  var isHeard: Bool
  /// The peer has closed its sending side, so it cannot answer a Ping.
  var hasEnded = false
  /// How long the peer may be silent; `nil` for no limit.
  var patience: Milliseconds?
  /// The interval of Pings; `nil` for none.
  var pingInterval: Milliseconds?

  enum Decision: Equatable {
    /// Checks again at this time; `.max` for never.
    case wait(until: Milliseconds)
    /// Sends a Ping and checks again at this time.
    case ping(next: Milliseconds)
    /// The peer was silent for too long.
    case expired
  }

  func decision(at now: Milliseconds) -> Decision {
    let limit = patience.map { lastSign + $0 } ?? .max
    guard now < limit else { return .expired }
    guard let pingInterval, !hasEnded else { return .wait(until: limit) }
    // The Pong would not be read.
    guard isHeard else { return .wait(until: min(limit, now + pingInterval)) }
    let due = max(lastSign, lastPing) + pingInterval
    return now >= due ? .ping(next: min(limit, now + pingInterval)) : .wait(until: min(limit, due))
  }
}
