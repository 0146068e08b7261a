public import ByteCoding
internal import Cryptography
internal import Locking

/// The keys of a gate's identities, in memory: what signs, and what verifiers are told of.
public final class IdentityKeys: Sendable {
  private let storage: any IdentityKeyStorage
  private let clock: WallClock
  private let ring = LockedValue<IdentityKeyRing?>(nil)

  /// Keys that are made once and kept in `storage`. See `prepare()`.
  public init(storage: any IdentityKeyStorage, clock: WallClock = .system) {
    self.storage = storage
    self.clock = clock
  }

  /// Whether there are keys to sign with.
  public var isReady: Bool { ring.withLock { $0 != nil } }

  /// Makes sure that there are keys. Costs nothing once there are; until then each call asks the storage.
  public func prepare() async throws(StoreError) {
    if !isReady { try await refresh() }
  }

  /// Takes over the keys that the storage has now: another node may have replaced them.
  public func refresh() async throws(StoreError) { adopt(try await stored()) }

  /// Makes a new key for every node that shares the storage; see `IdentityKeyRing.rotated(at:overlap:)`.
  ///
  /// - Returns: `false` if another node was faster; then nothing was changed here.
  public func rotate(overlap: Duration) async throws(StoreError) -> Bool {
    try await rotate(try await stored(), overlap: overlap)
  }

  /// Rotates if the youngest key has signed for `period`; whether it did. To be called now and then, by each node.
  public func rotateIfDue(every period: Duration, overlap: Duration) async throws(StoreError) -> Bool {
    try await prepare()
    guard isDue(ring.withLock { $0 }, after: period) else { return false }
    let current = try await stored()
    adopt(current)
    guard isDue(current, after: period) else { return false }
    return try await rotate(current, overlap: overlap)
  }

  private func isDue(_ ring: IdentityKeyRing?, after period: Duration) -> Bool {
    guard let youngest = ring?.keys.first else { return false }
    return clock.now().since(youngest.signsFrom) >= period
  }

  /// The key that signs at `now`; `nil` while there are no keys.
  public func signing(at now: Timestamp) -> IdentityKey? { ring.withLock { $0 }?.signing(at: now) }

  /// The keys that verifiers are told of at `now`, the youngest first.
  public func published(at now: Timestamp) -> [IdentityKey] { ring.withLock { $0 }?.published(at: now) ?? [] }

  private func adopt(_ ring: IdentityKeyRing) { self.ring.withLock { $0 = ring } }

  private func stored() async throws(StoreError) -> IdentityKeyRing {
    try await storage.identityKeys(orStoring: Self.made { () throws(CryptographyError) in try .new(at: clock.now()) })
  }

  private func rotate(_ current: IdentityKeyRing, overlap: Duration) async throws(StoreError) -> Bool {
    let next = try Self.made { () throws(CryptographyError) in
      try current.rotated(at: clock.now(), overlap: overlap)
    }
    guard try await storage.replaceIdentityKeys(current, with: next) else { return false }
    adopt(next)
    return true
  }

  private static func made(
    _ body: () throws(CryptographyError) -> IdentityKeyRing
  ) throws(StoreError) -> IdentityKeyRing {
    do throws(CryptographyError) { return try body() } catch { throw .failed(reason: "\(error)") }
  }
}

/// Makes new keys for identities when the old ones have served their time.
public struct IdentityKeyRotation: Sendable {
  private let keys: IdentityKeys
  private let period: Duration?
  private let overlap: Duration

  /// - Parameters:
  ///   - period: for how long a key signs; `nil` for ever.
  ///   - overlap: see `IdentityKeyRing.rotated(at:overlap:)`.
  public init(keys: IdentityKeys, every period: Duration?, overlap: Duration) {
    self.keys = keys
    self.period = period
    self.overlap = overlap
  }

  /// One round; whether a new key was made. A fault is not fatal: the next round does what this one left.
  public func run() async throws(StoreError) -> Bool {
    if let period { return try await keys.rotateIfDue(every: period, overlap: overlap) }
    try await keys.prepare()
    return false
  }
}
