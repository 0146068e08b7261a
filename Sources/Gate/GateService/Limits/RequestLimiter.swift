public import AttestGate
internal import Transport

/// Refuses requests above the rate limits and limits the number of sessions.
public struct RequestLimiter: Sendable {
  private let limits: RequestLimits
  private let ledger: RateLedger
  private let gates: NodeCount

  /// - Parameters:
  ///   - ledger: The instance that all limiters of the process share.
  ///   - gates: The number of gates that share the limits.
  public init(
    _ limits: RequestLimits = RequestLimits(), ledger: RateLedger = RateLedger(), gates: NodeCount = NodeCount()
  ) {
    self.limits = limits
    self.ledger = ledger
    self.gates = gates
  }

  /// This gate's share of the session limit.
  var sessions: Int { gates.share(of: limits.sessions) }

  /// This gate's share of the sessions of one key; `nil` for no limit.
  var sessionsOfKey: LiveSessions.KeyLimit? {
    limits.sessionsPerKey.map {
      LiveSessions.KeyLimit(sessions: gates.share(of: $0), closesOldest: limits.closesOldestSessionOfKey)
    }
  }

  /// Counts one event of `owner`.
  ///
  /// - Throws: `.rateLimited` if `owner` exceeds the rate.
  func spend(_ limit: RateLimit, of owner: some Hashable) throws(RequestRefusal) {
    guard let rate = limits[limit] else { return }
    if let wait = ledger.take(limit, of: owner, rate.share(ofOneIn: gates.count)) {
      throw .rateLimited(limit, wait: wait)
    }
  }

  func spend(_ limit: RateLimit, of peer: Peer) throws(RequestRefusal) {
    // Skips the computation of the address block if there is no limit.
    if limits[limit] != nil { try spend(limit, of: AddressBlock(peer.address)) }
  }

  /// Counts one request of `peer`, unless `peer` is one of `proxies`: a proxy sends the requests of many clients.
  ///
  /// A client that a PROXY header or a trusted `X-Forwarded-For` names is `peer` itself, and counts.
  func spend(_ limit: RateLimit, of peer: Peer, except proxies: [AddressRange]) throws(RequestRefusal) {
    if !proxies.contains(where: { $0.contains(peer.address) }) { try spend(limit, of: peer) }
  }
}
