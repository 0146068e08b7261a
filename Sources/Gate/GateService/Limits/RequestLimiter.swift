public import AttestGate
internal import Transport

/// Refuses what is asked too often, or of too many at once.
public struct RequestLimiter: Sendable {
  private let limits: RequestLimits
  private let ledger: RateLedger
  private let gates: NodeCount

  /// - Parameters:
  ///   - ledger: the same for all limiters of a process.
  ///   - gates: among how many the limits are divided.
  public init(
    _ limits: RequestLimits = RequestLimits(), ledger: RateLedger = RateLedger(), gates: NodeCount = NodeCount()
  ) {
    self.limits = limits
    self.ledger = ledger
    self.gates = gates
  }

  /// This gate's part of the sessions.
  var sessions: Int { gates.share(of: limits.sessions) }

  /// Takes one of the turns that `owner` has.
  func spend(_ limit: RateLimit, of owner: some Hashable) throws(RequestRefusal) {
    guard let rate = limits[limit] else { return }
    if let wait = ledger.take(limit, of: owner, rate.share(ofOneIn: gates.count)) {
      throw .rateLimited(limit, wait: wait)
    }
  }

  func spend(_ limit: RateLimit, of peer: Peer) throws(RequestRefusal) {
    // Without a limit nothing is looked at.
    if limits[limit] != nil { try spend(limit, of: AddressBlock(peer.address)) }
  }
}
