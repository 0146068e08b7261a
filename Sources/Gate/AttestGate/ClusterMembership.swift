internal import Cryptography

/// Cluster membership: the gates that share one store.
public protocol ClusterMembership: Sendable {
  /// Records that `gate` is alive and returns the number of gates that did so within `life`, including this one. The
  /// store's clock decides, so a wrong clock on a node has no effect.
  func report(_ gate: GateNumber, life: Duration) async throws(StoreError) -> Int

  /// Removes `gate` before its `life` has passed.
  func leave(_ gate: GateNumber) async throws(StoreError)

  /// Tries to start maintenance and returns whether it may run. If several gates ask at once, one gets `true`, until
  /// it calls `endMaintenance()` or its connection closes.
  func beginMaintenance() async throws(StoreError) -> Bool

  /// Ends this gate's maintenance run, so that another gate can start one.
  func endMaintenance() async throws(StoreError)
}

/// The identifier of a running gate process.
public struct GateNumber: Sendable, Hashable {
  public let bytes: [UInt8]

  /// Creates an identifier from 16 random bytes.
  public static func random() -> GateNumber { GateNumber(bytes: SecureRandom.bytes(16)) }
}

/// The number of gates that share a limit, as one gate sees it.
///
/// An additional gate counts immediately: until it does, all gates together admit too much. A missing gate is removed
/// only after `patience`, so a restart or a slow store does not make the limit jump.
public struct LiveGates: Sendable {
  /// The number of gates, at least 1.
  public private(set) var count = 1
  private let patience: Duration
  /// The greatest number seen since fewer than `count` gates report, and the time at which that began.
  private var decline: (greatest: Int, since: ContinuousClock.Instant)?

  public init(patience: Duration = .seconds(30)) { self.patience = patience }

  /// Records that `number` gates were alive at `instant`. Do not call it while the store cannot be asked: the last
  /// count then stays in force.
  public mutating func see(_ number: Int, at instant: ContinuousClock.Instant) {
    let number = max(1, number)
    guard number < count else {
      count = number
      decline = nil
      return
    }
    let start = decline?.since ?? instant
    let greatest = max(decline?.greatest ?? number, number)
    decline = (greatest, start)
    guard start.duration(to: instant) >= patience else { return }
    count = greatest
    decline = nil
  }

  /// This gate's share of a common limit, rounded up. A limit above zero gives every gate at least 1.
  public func share(of limit: Int) -> Int { limit / count + (limit % count == 0 ? 0 : 1) }
}
