internal import Cryptography

/// Which gates work on one store, as far as one of them has to know.
public protocol ClusterMembership: Sendable {
  /// Says that `gate` is alive and gives the number of gates that said so within `life`, this one included. Whose clock
  /// is wrong plays no part: the store's own counts.
  func report(_ gate: GateNumber, life: Duration) async throws(StoreError) -> Int

  /// Takes `gate` off the list before its time is up.
  func leave(_ gate: GateNumber) async throws(StoreError)

  /// Whether housekeeping may be done now: of several gates that ask at once, one gets `true` until it calls
  /// `endHousekeeping()` or its connection ends.
  func beginHousekeeping() async throws(StoreError) -> Bool

  func endHousekeeping() async throws(StoreError)
}

/// What tells a running gate from others, for as long as it runs.
public struct GateNumber: Sendable, Hashable {
  public let bytes: [UInt8]

  /// 16 random bytes.
  public static func random() -> GateNumber { GateNumber(bytes: SecureRandom.bytes(16)) }
}

/// How many gates share a limit, as one of them sees it.
///
/// A gate more counts at once: until it does, all together let through too much. A gate less counts once it has been
/// missing for `patience`, so that a gate that is restarted, or a store that is slow, does not let the limit jump up
/// and down.
public struct LiveGates: Sendable {
  /// At least 1.
  public private(set) var count = 1
  private let patience: Duration
  /// The greatest number seen since fewer than `count` are seen, and since when that is.
  private var decline: (greatest: Int, since: ContinuousClock.Instant)?

  public init(patience: Duration = .seconds(30)) { self.patience = patience }

  /// Records that `number` gates were counted at `instant`. While the store cannot be asked, do not call it: the last
  /// count stays.
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

  /// This gate's part of a limit for all gates, rounded up: a limit that is not zero leaves each gate at least one.
  public func share(of limit: Int) -> Int { limit / count + (limit % count == 0 ? 0 : 1) }
}
