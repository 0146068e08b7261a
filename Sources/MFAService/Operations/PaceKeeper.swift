internal import ByteCoding
internal import Locking
internal import MFADomain

/// How many calls one app instance may make: so many at once, and so many a second from then on.
public struct PaceLimits: Sendable, Hashable {
  public var brisk = Bucket(size: 120, perSecond: 20)
  public var slow = Bucket(size: 20, perSecond: 0.5)

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

/// Token buckets, one for each app instance and pace. Debug builds share an identity, so each of their addresses has one.
final class PaceKeeper: Sendable {
  private struct Key: Hashable {
    let subject: String
    let pace: Operation.Pace
  }

  private struct Level {
    var tokens: Double
    var at: Timestamp
  }

  /// More than are kept in memory at once; beyond that the fullest buckets, which say nothing, are forgotten.
  private static let mostBuckets = 100_000

  private let limits: PaceLimits
  private let clock: WallClock
  private let levels = Guarded<[Key: Level]>([:])

  init(limits: PaceLimits, clock: WallClock) {
    self.limits = limits
    self.clock = clock
  }

  /// Takes one call, or says how long to wait for the next.
  func take(_ pace: Operation.Pace, for identity: GateIdentity) -> Duration? {
    let bucket = pace == .brisk ? limits.brisk : limits.slow
    let subject = identity.binding == .debugBuild ? "debug:" + identity.clientAddress : identity.subject
    let now = clock.now()
    return levels.withLock { levels in
      if levels.count >= Self.mostBuckets { Self.forgetFull(&levels, limits, at: now) }
      var level = levels[Key(subject: subject, pace: pace)] ?? Level(tokens: bucket.size, at: now)
      level.tokens = Self.tokens(in: level, bucket, at: now)
      level.at = now
      defer { levels[Key(subject: subject, pace: pace)] = level }
      guard level.tokens >= 1 else { return .seconds((1 - level.tokens) / bucket.perSecond) }
      level.tokens -= 1
      return nil
    }
  }

  private static func tokens(in level: Level, _ bucket: PaceLimits.Bucket, at now: Timestamp) -> Double {
    let passed = max(0, now.since(level.at) / .seconds(1))
    return min(bucket.size, level.tokens + passed * bucket.perSecond)
  }

  private static func forgetFull(_ levels: inout [Key: Level], _ limits: PaceLimits, at now: Timestamp) {
    levels = levels.filter { key, level in
      let bucket = key.pace == .brisk ? limits.brisk : limits.slow
      return tokens(in: level, bucket, at: now) < bucket.size
    }
  }
}
