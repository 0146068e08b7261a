public import ByteCoding
internal import Cryptography
internal import Locking

/// The identity signing keys in memory: the key that signs, and the keys that are published to verifiers.
public final class IdentityKeys: Sendable {
  private let storage: any IdentityKeyStorage
  private let clock: WallClock
  private let ring = LockedValue<IdentityKeyRing?>(nil)

  /// Creates keys that are made once and kept in `storage`. Call `prepare()` before the first use.
  public init(storage: any IdentityKeyStorage, clock: WallClock = .system) {
    self.storage = storage
    self.clock = clock
  }

  /// Whether there is a key to sign with.
  public var isReady: Bool { ring.withLock { $0 != nil } }

  /// Loads the keys, and makes them if there are none. Free once they are loaded; until then each call reads the
  /// storage.
  public func prepare() async throws(StoreError) {
    if !isReady { try await refresh() }
  }

  /// Reloads the keys from the storage: another node may have replaced them.
  public func refresh() async throws(StoreError) { adopt(try await stored()) }

  /// Makes a new key for every node that shares the storage; see `IdentityKeyRing.rotated(at:overlap:)`.
  ///
  /// - Returns: `false` if another node replaced the keys first; the keys are then unchanged here.
  public func rotate(overlap: Duration) async throws(StoreError) -> Bool {
    try await rotate(try await stored(), overlap: overlap)
  }

  /// Rotates the keys if the newest has signed for `period`, and returns whether it did. Each node calls it
  /// periodically.
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

  /// The time from which the newest key signs, if a clock that was far ahead has set it; `nil` otherwise.
  fileprivate var keyOfClockAhead: Timestamp? {
    ring.withLock { $0?.keys.first?.signsFrom }.flatMap { $0.isOfClockAhead(at: clock.now()) ? $0 : nil }
  }

  /// Returns the key that signs at `now`; `nil` while there are no keys.
  public func signing(at now: Timestamp) -> IdentityKey? { ring.withLock { $0 }?.signing(at: now) }

  /// Returns the keys that are published to verifiers at `now`, newest first.
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

/// Rotates the identity signing keys periodically.
public struct IdentityKeyRotation: Sendable {
  private let keys: IdentityKeys
  private let period: Duration?
  private let overlap: Duration

  /// - Parameters:
  ///   - period: The time for which a key signs; `nil` for no rotation.
  ///   - overlap: See `IdentityKeyRing.rotated(at:overlap:)`.
  public init(keys: IdentityKeys, every period: Duration?, overlap: Duration) {
    self.keys = keys
    self.period = period
    self.overlap = overlap
  }

  /// The time from which the newest key signs, if it is to be rotated but a clock that was far ahead has set that time;
  /// `nil` otherwise. The key is not rotated before: an operator has to do it.
  public var keyOfClockAhead: Timestamp? { period == nil ? nil : keys.keyOfClockAhead }

  /// Performs one run and returns whether it made a new key. An error is not fatal: the next run tries again.
  public func run() async throws(StoreError) -> Bool {
    if let period { return try await keys.rotateIfDue(every: period, overlap: overlap) }
    try await keys.prepare()
    return false
  }
}
