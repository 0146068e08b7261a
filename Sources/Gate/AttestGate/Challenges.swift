public import ByteCoding
internal import Cryptography
internal import Locking

/// Issues nonces, and recognizes its own.
///
/// Issuing stores nothing: a nonce carries its time and its proof, so a flood of requests fills no memory and evicts
/// no other client's nonce. `KeyRegistry` ensures that a nonce is used once.
public final class Challenges: Sendable {
  /// The greatest age at which a nonce is good.
  public let life: Duration
  /// How far ahead of this node's clock another node's may be.
  public let skew: Duration
  private let clock: WallClock
  private let storage: (any ChallengeKeyStorage)?
  private let held: LockedValue<HeldRing>
  private let refreshes = LockedValue(Refreshes())

  /// The ring that serves, and how new it is: of several reads that are under way at once, one that began later never
  /// gives way to one that began earlier, whichever answer comes first.
  private struct HeldRing {
    private(set) var ring: ChallengeKeyRing?
    private var begun = 0
    private var adopted = 0

    init(_ ring: ChallengeKeyRing?) { self.ring = ring }

    /// The place in the order of what begins now.
    mutating func begin() -> Int {
      begun += 1
      return begun
    }

    mutating func adopt(_ ring: ChallengeKeyRing, as place: Int) {
      guard place > adopted else { return }
      (self.ring, adopted) = (ring, place)
    }
  }

  /// Of the keys, for nonces whose key is unknown here.
  private struct Refreshes {
    /// When the last one began that succeeded.
    var last: Timestamp?
    /// What the one that is under way comes to.
    var current: Task<StoreError?, Never>?
  }

  /// Challenges under keys that are configured.
  public init(ring: ChallengeKeyRing, life: Duration = .seconds(60), skew: Duration = .seconds(5)) {
    self.life = life
    self.skew = skew
    clock = .system
    storage = nil
    held = LockedValue(HeldRing(ring))
  }

  /// Challenges under keys that are made once and kept in `storage`. See `prepare()`.
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

  /// Makes sure that there are keys. Costs nothing once there are; until then each call asks the storage.
  public func prepare() async throws(StoreError) {
    guard let storage, !isReady else { return }
    _ = try await stored(in: storage)
  }

  /// What the storage has, which serves from now on, unless a read that began later has been answered.
  private func stored(in storage: any ChallengeKeyStorage) async throws(StoreError) -> ChallengeKeyRing {
    let place = held.withLock { $0.begin() }
    let ring = try await storage.challengeKeys(orStoring: .random(madeAt: clock.now()))
    held.withLock { $0.adopt(ring, as: place) }
    return ring
  }

  /// Takes over the keys that the storage has now: another node may have replaced them. Does nothing under keys that
  /// are configured.
  public func refresh() async throws(StoreError) {
    guard let storage else { return }
    _ = try await stored(in: storage)
  }

  /// Makes a new key that issues from now on, for every node that shares the storage. Nonces that were issued under the
  /// others stay good for their life, and other nodes have `overlap` to learn of the new key.
  ///
  /// - Returns: `false` if another node was faster, or if the keys are configured; then nothing was changed there.
  public func rotate(
    at now: Timestamp, overlap: Duration = Challenges.standardOverlap
  ) async throws(StoreError) -> Bool {
    guard let storage else { return false }
    let current = try await stored(in: storage)
    return try await replace(current, with: current.rotated(at: now, overlap: overlap, life: greatestAge), in: storage)
  }

  /// How long other nodes have to learn of a new key.
  public static let standardOverlap = Duration.seconds(30)

  /// As `rotate(at:)`, if the key that issues is as old as `period` (`nil`: it may grow old); otherwise drops the
  /// keys of which no nonce can be good any more.
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

  /// The greatest age at which any node takes a nonce: the clock of one may be behind by `skew`, and that of the one
  /// that issued ahead by as much.
  var greatestAge: Duration { life + skew * 2 }

  private func replace(
    _ current: ChallengeKeyRing, with next: ChallengeKeyRing, in storage: any ChallengeKeyStorage
  ) async throws(StoreError) -> Bool {
    guard try await storage.replaceChallengeKeys(current, with: next) else { return false }
    // Behind every read that began before the storage had it.
    held.withLock { $0.adopt(next, as: $0.begin()) }
    return true
  }

  /// Like `refresh()`, for a nonce whose key is unknown here. Any client can invent such nonces, so within a second
  /// of a refresh no other one starts. A caller that arrives during a refresh waits for it and shares its outcome.
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

  /// Whether there are keys to issue with.
  public var isReady: Bool { held.withLock { $0.ring != nil } }

  /// A new nonce, or `nil` while there are no keys.
  public func issue(at now: Timestamp) -> IssuedChallenge? {
    guard let key = held.withLock({ $0.ring?.issuing }) else { return nil }
    let time = UInt64(clamping: now.milliseconds)
    var bytes = [key.number]
    for shift in stride(from: 40, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: time >> UInt64(shift))) }
    bytes += SecureRandom.bytes(9)
    bytes += Self.code(of: bytes, under: key)
    return Nonce(bytes: bytes).map { IssuedChallenge(nonce: $0, expiresAt: $0.issuedAt.advanced(by: life)) }
  }

  /// Checks that `nonce` was made with one of our keys and is good at `now`: at most `life` old, at most `skew` ahead.
  public func check(_ nonce: Nonce, at now: Timestamp) throws(NonceFault) {
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

/// What was done to the keys of nonces.
public enum RingChange: Sendable, Hashable {
  /// A new one issues.
  case rotated
  /// So many were dropped.
  case pruned(Int)
}

/// A nonce and the last instant at which it is good.
public struct IssuedChallenge: Sendable, Hashable {
  public let nonce: Nonce
  public let expiresAt: Timestamp
}

/// Why a nonce of the right form is not good.
public enum NonceFault: Error, Sendable, Hashable {
  /// No key has this number.
  case unknownKey(UInt8)
  /// The authentication code is wrong.
  case forged
  /// Issued after its key had retired.
  case retiredKey(UInt8)
  case fromTheFuture(ahead: Duration)
  case expired(age: Duration)
}
