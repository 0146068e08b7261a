public import ByteCoding
internal import Locking
internal import MFADomain

/// The rate limits of one app instance or client address: bursts and calls per second.
public struct RateLimits: Sendable, Hashable {
  /// The limit of one app instance for reads and sign-ins.
  public var standard = Bucket(size: 120, perSecond: 20)
  /// The limit of one app instance for operations that send messages or verify codes.
  public var sensitive = Bucket(size: 20, perSecond: 0.5)
  /// The common limit of all app instances with one client address, such as a household or a company, for operations
  /// that send messages or verify codes; `nil` for no limit, if all clients share one address.
  public var sensitiveOfAddress: Bucket? = Bucket(size: 100, perSecond: 2)

  /// A token bucket.
  public struct Bucket: Sendable, Hashable {
    /// The maximum burst.
    public var size: Double
    /// The number of calls per second after the burst.
    public var perSecond: Double

    /// Creates a bucket.
    public init(size: Double, perSecond: Double) {
      self.size = size
      self.perSecond = perSecond
    }
  }

  /// Creates the default limits.
  public init() {}
}

/// Token buckets: one for each app instance and rate class, and one for each client address. Debug builds share an
/// identity, so they have one bucket for each address.
public final class RateLimiter: Sendable {
  private enum Kind: Hashable { case standard, sensitive, sensitiveOfAddress }

  private struct Key: Hashable {
    let subject: String
    let kind: Kind
  }

  private struct Level {
    var tokens: Double
    var at: Timestamp
  }

  private struct State {
    var limits: RateLimits
    var levels: [Key: Level] = [:]
  }

  /// The maximum number of buckets in memory. Above it, full buckets are removed; a new bucket is full anyway.
  private static let mostBuckets = 100_000

  private let clock: WallClock
  private let state: LockedValue<State>

  /// Creates full buckets.
  public init(limits: RateLimits, clock: WallClock) {
    self.clock = clock
    state = LockedValue(State(limits: limits))
  }

  /// Applies other limits from now on. Buckets keep their tokens: a reload must not give a client another burst.
  public func replace(limits: RateLimits) { state.withLock { $0.limits = limits } }

  /// Takes a token for one call. Returns the time to wait if a bucket is empty; then no bucket loses a token.
  func take(_ rateClass: Operation.RateClass, for identity: GateIdentity) -> Duration? {
    let address = NetworkPrefix.block(of: identity.clientAddress)
    let subject = identity.binding == .debugBuild ? "debug:" + address : identity.subject
    let keys =
      rateClass == .standard
      ? [Key(subject: subject, kind: .standard)]
      : [Key(subject: subject, kind: .sensitive), Key(subject: address, kind: .sensitiveOfAddress)]
    let now = clock.now()
    return state.withLock { state in
      let limits = state.limits
      if state.levels.count >= Self.mostBuckets { Self.forgetFull(&state.levels, limits, at: now) }
      var wait: Duration?
      for key in keys {
        guard let bucket = Self.bucket(key.kind, limits) else { continue }
        let tokens = Self.tokens(in: state.levels[key] ?? Level(tokens: bucket.size, at: now), bucket, at: now)
        state.levels[key] = Level(tokens: tokens, at: now)
        if tokens < 1 { wait = max(wait ?? .zero, .seconds((1 - tokens) / bucket.perSecond)) }
      }
      if let wait { return wait }
      for key in keys { state.levels[key]?.tokens -= 1 }
      return nil
    }
  }

  private static func bucket(_ kind: Kind, _ limits: RateLimits) -> RateLimits.Bucket? {
    switch kind {
    case .standard: limits.standard
    case .sensitive: limits.sensitive
    case .sensitiveOfAddress: limits.sensitiveOfAddress
    }
  }

  private static func tokens(in level: Level, _ bucket: RateLimits.Bucket, at now: Timestamp) -> Double {
    let passed = max(0, now.since(level.at) / .seconds(1))
    return min(bucket.size, level.tokens + passed * bucket.perSecond)
  }

  private static func forgetFull(_ levels: inout [Key: Level], _ limits: RateLimits, at now: Timestamp) {
    levels = levels.filter { key, level in
      guard let bucket = bucket(key.kind, limits) else { return false }
      return tokens(in: level, bucket, at: now) < bucket.size
    }
  }
}
