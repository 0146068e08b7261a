internal import ByteCoding
internal import Crypto
internal import Locking
internal import MFADomain

/// The identities that this process has accepted, for as long as a clock within the permitted difference accepts them.
///
/// It makes each identity valid once at this backend, without the database. Its memory is bounded, and an identity that
/// finds no room is reported, so that the caller records it in the database instead: nothing is forgotten before its
/// time.
public final class SpentIdentities: Sendable {
  /// The result of `spend`.
  enum Result: Sendable, Hashable {
    /// It is the first use.
    case first
    /// It was used before.
    case usedBefore
    /// It may be the first use: there is no room to remember it, or was none for an earlier use.
    case noRoom
  }

  /// The numbers of one shard, by the second in which they end.
  private struct Shard {
    var seconds: [Int64: Set<Key>] = [:]
    var count = 0
    /// The last second in which an identity ends that found no room: those up to it may have been used unnoticed.
    var fullUntil = Int64.min

    mutating func forget(endedBefore now: Int64) {
      for (second, keys) in seconds where second < now {
        seconds[second] = nil
        count -= keys.count
      }
    }
  }

  /// 128 bits of a hash: numbers have up to 256 bytes, and these take the same room each.
  private struct Key: Hashable {
    let high: UInt64
    let low: UInt64

    init(_ number: String) {
      let digest = Array(SHA256.hash(data: Array(number.utf8)))
      high = digest[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
      low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  private static let shardCount = 16

  private let shards: [LockedValue<Shard>]
  private let mostOfShard: Int

  /// - Parameter most: the number of identities in memory, about 50 bytes each. The default is room for 10,000 a
  ///   second.
  public init(most: Int = 1 << 20) {
    mostOfShard = max(1, most / Self.shardCount)
    shards = (0..<Self.shardCount).map { _ in LockedValue(Shard()) }
  }

  /// Spends `number`. Of concurrent calls with the same number, one at most gets `.first`.
  func spend(_ number: IdentityNumber, at now: Timestamp) -> Result {
    let key = Key(number.id)
    // The end is a claim of the identity, so the same number is always in the same second.
    let second = number.end.seconds
    return shards[Int(key.low % UInt64(Self.shardCount))].withLock { shard in
      if shard.seconds[second]?.contains(key) == true { return .usedBefore }
      if shard.count >= mostOfShard || shard.seconds[second] == nil { shard.forget(endedBefore: now.seconds) }
      guard shard.count < mostOfShard else {
        shard.fullUntil = max(shard.fullUntil, second)
        return .noRoom
      }
      shard.seconds[second, default: []].insert(key)
      shard.count += 1
      return second <= shard.fullUntil ? .noRoom : .first
    }
  }

  /// The number of identities in memory, for tests.
  var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }
}
