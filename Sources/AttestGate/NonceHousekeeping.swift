internal import ByteCoding

/// Forgets spent nonces once they are too old for any node to accept them, so that the store does not grow for ever.
public struct NonceHousekeeping: Sendable {
  private let registry: any KeyRegistry
  private let greatestAge: Duration
  private let clock: WallClock

  public init(registry: any KeyRegistry, challenges: Challenges, clock: WallClock = .system) {
    self.registry = registry
    // Twice the skew: a node that is behind by as much accepts a nonce for so much longer.
    greatestAge = challenges.life + challenges.skew * 2
    self.clock = clock
  }

  /// One round. A fault is not fatal: the next round forgets what this one left.
  public func run() async throws(StoreError) {
    try await registry.forgetNonces(issuedBy: clock.now().advanced(by: .zero - greatestAge))
  }
}
