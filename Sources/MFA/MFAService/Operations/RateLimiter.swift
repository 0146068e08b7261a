internal import ByteCoding
internal import Locking
internal import MFADomain

/// How many calls one app instance, or one address, may make: so many at once, and so many a second from then on.
public struct RateLimits: Sendable, Hashable {
  public var standard = Bucket(size: 120, perSecond: 20)
  public var sensitive = Bucket(size: 20, perSecond: 0.5)
  /// The slow calls of all app instances behind one address, which may be a household or a company; `nil` for no limit,
  /// where everybody comes from one address.
  public var sensitiveOfAddress: Bucket? = Bucket(size: 100, perSecond: 2)

  public struct Bucket: Sendable, Hashable {
    public var size: Double
    public var perSecond: Double

    public init(size: Double, perSecond: Double) {
      self.size = size
      self.perSecond = perSecond
    }
  }

  public init() {}
}

/// Token buckets, one for each app instance and pace, and one for each address and slow calls. Debug builds share an
/// identity, so each of their addresses has one.
final class RateLimiter: Sendable {
  private enum Kind: Hashable { case standard, sensitive, sensitiveOfAddress }

  private struct Key: Hashable {
    let subject: String
    let kind: Kind
  }

  private struct Level {
    var tokens: Double
    var at: Timestamp
  }

  /// More than are kept in memory at once; beyond that the fullest buckets, which say nothing, are forgotten.
  private static let mostBuckets = 100_000

  private let limits: RateLimits
  private let clock: WallClock
  private let levels = LockedValue<[Key: Level]>([:])

  init(limits: RateLimits, clock: WallClock) {
    self.limits = limits
    self.clock = clock
  }

  /// Takes one call, or says how long to wait for the next. A call that one bucket refuses is taken from none.
  func take(_ rateClass: Operation.RateClass, for identity: GateIdentity) -> Duration? {
    let address = NetworkPrefix.block(of: identity.clientAddress)
    let subject = identity.binding == .debugBuild ? "debug:" + address : identity.subject
    let keys =
      rateClass == .standard
      ? [Key(subject: subject, kind: .standard)]
      : [Key(subject: subject, kind: .sensitive), Key(subject: address, kind: .sensitiveOfAddress)]
    let now = clock.now()
    return levels.withLock { levels in
      if levels.count >= Self.mostBuckets { Self.forgetFull(&levels, limits, at: now) }
      var wait: Duration?
      for key in keys {
        guard let bucket = Self.bucket(key.kind, limits) else { continue }
        let tokens = Self.tokens(in: levels[key] ?? Level(tokens: bucket.size, at: now), bucket, at: now)
        levels[key] = Level(tokens: tokens, at: now)
        if tokens < 1 { wait = max(wait ?? .zero, .seconds((1 - tokens) / bucket.perSecond)) }
      }
      if let wait { return wait }
      for key in keys { levels[key]?.tokens -= 1 }
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
