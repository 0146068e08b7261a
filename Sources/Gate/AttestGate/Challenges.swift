public import ByteCoding
internal import Cryptography
internal import Locking

/// Issues nonces and verifies that a nonce was issued here.
///
/// Issuing stores nothing: a nonce carries its time and its authentication code. A flood of requests therefore fills
/// no memory and evicts no client's nonce. The `KeyRegistry` guarantees that a nonce is used only once.
public final class Challenges: Sendable {
  /// The maximum age of a valid nonce.
  public let life: Duration
  /// The time by which another node's clock may be ahead of this node's clock.
  public let skew: Duration
  private let clock: WallClock
  private let storage: (any ChallengeKeyStorage)?
  private let held: LockedValue<HeldRing>
  private let refreshes = LockedValue(Refreshes())

  /// The ring in use and the order of the reads that delivered it. If several reads run at once, the result of a
  /// later read is never replaced by the result of an earlier one, whichever finishes first.
  private struct HeldRing {
    private(set) var ring: ChallengeKeyRing?
    private var begun = 0
    private var adopted = 0

    init(_ ring: ChallengeKeyRing?) { self.ring = ring }

    /// Returns the sequence number of a read that starts now.
    mutating func begin() -> Int {
      begun += 1
      return begun
    }

    mutating func adopt(_ ring: ChallengeKeyRing, as place: Int) {
      guard place > adopted else { return }
      (self.ring, adopted) = (ring, place)
    }
  }

  /// The reloads of the ring that nonces with an unknown key cause.
  private struct Refreshes {
    /// The start of the last successful reload.
    var last: Timestamp?
    /// The reload in progress, with its error.
    var current: Task<StoreError?, Never>?
  }

  /// Creates challenges with configured keys.
  public init(ring: ChallengeKeyRing, life: Duration = .seconds(60), skew: Duration = .seconds(5)) {
    self.life = life
    self.skew = skew
    clock = .system
    storage = nil
    held = LockedValue(HeldRing(ring))
  }

  /// Creates challenges with keys that are made once and kept in `storage`. Call `prepare()` before the first use.
  public init(
    storage: any ChallengeKeyStorage, life: Duration = .seconds(60), skew: Duration = .seconds(5),
    clock: WallClock = .system
  ) {
    self.life = life
    self.skew = skew
    self.clock = clock
    self.storage = storage
    held = LockedValue(HeldRing(nil))
  }

  /// Loads the keys, and makes them if there are none. Free once they are loaded; until then each call reads the
  /// storage.
  public func prepare() async throws(StoreError) {
    guard let storage, !isReady else { return }
    _ = try await stored(in: storage)
  }

  /// Reads the ring from the storage and uses it, unless a read that started later has already finished.
  private func stored(in storage: any ChallengeKeyStorage) async throws(StoreError) -> ChallengeKeyRing {
    let place = held.withLock { $0.begin() }
    let ring = try await storage.challengeKeys(orStoring: .random(madeAt: clock.now()))
    held.withLock { $0.adopt(ring, as: place) }
    return ring
  }

  /// Reloads the keys from the storage: another node may have replaced them. Does nothing with configured keys.
  public func refresh() async throws(StoreError) {
    guard let storage else { return }
    _ = try await stored(in: storage)
  }

  /// Makes a new key that issues from now on, for every node that shares the storage.
  ///
  /// Nonces of the other keys stay valid until they expire. Other nodes have `overlap` to load the new key.
  ///
  /// - Returns: `false` if another node replaced the keys first, or if the keys are configured; the storage is then
  ///   unchanged.
  public func rotate(
    at now: Timestamp, overlap: Duration = Challenges.standardOverlap
  ) async throws(StoreError) -> Bool {
    guard let storage else { return false }
    let current = try await stored(in: storage)
    return try await replace(current, with: current.rotated(at: now, overlap: overlap, life: greatestAge), in: storage)
  }

  /// The time that other nodes have to load a new key.
  public static let standardOverlap = Duration.seconds(30)

  /// Rotates the keys if the issuing key is at least `period` old (`nil`: no rotation). Otherwise drops the keys
  /// whose nonces have all expired.
  public func tend(at now: Timestamp, every period: Duration?) async throws(StoreError) -> RingChange? {
    guard let storage else { return nil }
    let current = try await stored(in: storage)
    if let period, current.isDue(at: now, every: period) {
      let next = current.rotated(at: now, overlap: Self.standardOverlap, life: greatestAge)
      return try await replace(current, with: next, in: storage) ? .rotated : nil
    }
    let next = current.pruned(at: now, life: greatestAge)
    guard next.keys.count < current.keys.count, try await replace(current, with: next, in: storage) else { return nil }
    return .pruned(current.keys.count - next.keys.count)
  }

  /// The maximum age at which any node accepts a nonce: the clock of the accepting node may be `skew` behind, and the
  /// clock of the issuing node `skew` ahead.
  var greatestAge: Duration { life + skew * 2 }

  private func replace(
    _ current: ChallengeKeyRing, with next: ChallengeKeyRing, in storage: any ChallengeKeyStorage
  ) async throws(StoreError) -> Bool {
    guard try await storage.replaceChallengeKeys(current, with: next) else { return false }
    // Later than every read that started before the storage was updated.
    held.withLock { $0.adopt(next, as: $0.begin()) }
    return true
  }

  /// Reloads the keys for a nonce whose key is unknown here.
  ///
  /// Clients can invent such nonces, so there is at most one reload per second. A caller that arrives during a reload
  /// waits for it and gets the same result.
  func refreshOnce(at now: Timestamp) async throws(StoreError) {
    guard storage != nil else { return }
    let refresh = refreshes.withLock { refreshes -> Task<StoreError?, Never>? in
      if let current = refreshes.current { return current }
      if let last = refreshes.last, (.zero..<Duration.seconds(1)).contains(now.since(last)) { return nil }
      let task = Task { await self.refreshAndNote(at: now) }
      refreshes.current = task
      return task
    }
    if let fault = await refresh?.value { throw fault }
  }

  private func refreshAndNote(at now: Timestamp) async -> StoreError? {
    var fault: StoreError?
    do throws(StoreError) { try await refresh() } catch { fault = error }
    refreshes.withLock { refreshes in
      refreshes.current = nil
      if fault == nil { refreshes.last = now }
    }
    return fault
  }

  /// When the issuing key was made, if a clock that was far ahead has made it; `nil` otherwise.
  var keyOfClockAhead: Timestamp? {
    held.withLock { $0.ring?.issuing.madeAt }.flatMap { $0.isOfClockAhead(at: clock.now()) ? $0 : nil }
  }

  /// Whether there is a key to issue nonces with.
  public var isReady: Bool { held.withLock { $0.ring != nil } }

  /// Issues a new nonce; returns `nil` while there are no keys.
  public func issue(at now: Timestamp) -> IssuedChallenge? {
    guard let key = held.withLock({ $0.ring?.issuing }) else { return nil }
    let time = UInt64(clamping: now.milliseconds)
    var bytes = [key.number]
    for shift in stride(from: 40, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: time >> UInt64(shift))) }
    bytes += SecureRandom.bytes(9)
    bytes += Self.code(of: bytes, under: key)
    return Nonce(bytes: bytes).map { IssuedChallenge(nonce: $0, expiresAt: $0.issuedAt.advanced(by: life)) }
  }

  /// Checks that `nonce` was made with one of our keys and is valid at `now`: at most `life` old, at most `skew` in
  /// the future.
  public func check(_ nonce: Nonce, at now: Timestamp) throws(NonceRejection) {
    guard let key = held.withLock({ $0.ring?.key(numbered: nonce.keyNumber) }) else {
      throw .unknownKey(nonce.keyNumber)
    }
    guard constantTimeEqual(Self.code(of: nonce.authenticated, under: key), nonce.code) else { throw .forged }
    if let end = key.retiresAt, nonce.issuedAt > end { throw .retiredKey(nonce.keyNumber) }
    let age = now.since(nonce.issuedAt)
    guard age >= .zero - skew else { throw .fromTheFuture(ahead: .zero - age) }
    guard age <= life else { throw .expired(age: age) }
  }

  private static let context = Array("sallyport nonce v1".utf8)

  private static func code(of bytes: [UInt8], under key: ChallengeKey) -> ArraySlice<UInt8> {
    HMACSHA256.authenticate(context + bytes, key: key.secret).prefix(Nonce.half)
  }
}

/// A change to the challenge keys.
public enum RingChange: Sendable, Hashable {
  /// A new key issues nonces.
  case rotated
  /// The number of expired keys that were dropped.
  case pruned(Int)
}

/// A nonce and the last moment at which it is valid.
public struct IssuedChallenge: Sendable, Hashable {
  public let nonce: Nonce
  public let expiresAt: Timestamp
}

/// The reason why a well-formed nonce is not valid.
public enum NonceRejection: Error, Sendable, Hashable {
  /// No key has this number.
  case unknownKey(UInt8)
  /// The authentication code is wrong.
  case forged
  /// The nonce was issued after its key had retired.
  case retiredKey(UInt8)
  case fromTheFuture(ahead: Duration)
  case expired(age: Duration)
}
