/// A node of the wheel, stored with the session that it wakes.
struct TimerNode {
  /// The deadline; meaningless unless `isLinked`.
  var deadline: Milliseconds = 0
  fileprivate(set) var isLinked = false
  fileprivate var previous: UnsafeMutablePointer<TimerNode>?
  fileprivate var next: UnsafeMutablePointer<TimerNode>?
  fileprivate var bucket = 0
  /// The slot to wake, in the loop's table.
  var slot: UInt32 = 0
}

/// Coarse deadlines for many sessions. Setting or clearing one costs a few instructions and allocates nothing.
///
/// A hashed wheel of 512 buckets of 128 ms. A deadline beyond one turn stays in its bucket for the next turn.
/// Deadlines fire up to one bucket late, never early.
struct TimerWheel {
  static let bucketCount = 512
  static let tick: Milliseconds = 128
  private static let wordCount = bucketCount / UInt64.bitWidth

  private let heads: UnsafeMutablePointer<UnsafeMutablePointer<TimerNode>?>
  /// One bit for each bucket that contains a node: a loop asks before each sleep how long it may sleep.
  private let occupied: UnsafeMutablePointer<UInt64>
  private var lastTick: Milliseconds
  private(set) var count = 0

  init(now: Milliseconds) {
    heads = .allocate(capacity: Self.bucketCount)
    heads.initialize(repeating: nil, count: Self.bucketCount)
    occupied = .allocate(capacity: Self.wordCount)
    occupied.initialize(repeating: 0, count: Self.wordCount)
    lastTick = now / Self.tick
  }

  /// Frees the buckets. The nodes belong to their sessions.
  func deallocate() {
    heads.deallocate()
    occupied.deallocate()
  }

  /// Sets `node` to fire at `deadline`. An earlier setting is replaced.
  mutating func schedule(_ node: UnsafeMutablePointer<TimerNode>, at deadline: Milliseconds) {
    if node.pointee.isLinked { unlink(node) }
    node.pointee.deadline = deadline
    let turn = max(deadline / Self.tick + 1, lastTick + 1)
    let bucket = Int(turn % Milliseconds(Self.bucketCount))
    node.pointee.bucket = bucket
    node.pointee.previous = nil
    node.pointee.next = heads[bucket]
    heads[bucket]?.pointee.previous = node
    heads[bucket] = node
    occupied[bucket >> 6] |= 1 << UInt64(bucket & 63)
    node.pointee.isLinked = true
    count += 1
  }

  mutating func cancel(_ node: UnsafeMutablePointer<TimerNode>) {
    if node.pointee.isLinked { unlink(node) }
  }

  /// Returns how long the loop may sleep: the time until the next bucket with nodes, or `nil` if there is none.
  func delay(from now: Milliseconds) -> Milliseconds? {
    guard count > 0 else { return nil }
    let first = Int((lastTick + 1) % Milliseconds(Self.bucketCount))
    return max(0, (lastTick + 1 + Milliseconds(distance(from: first))) * Self.tick - now)
  }

  /// Returns the number of buckets from `first` to the next one with nodes. At least one bucket must have nodes.
  private func distance(from first: Int) -> Int {
    var word = first >> 6
    var bits = occupied[word] & (.max << UInt64(first & 63))
    // The word of the first bucket comes again at the end, for the buckets before it.
    for _ in 0..<Self.wordCount {
      if bits != 0 { break }
      word = (word + 1) % Self.wordCount
      bits = occupied[word]
    }
    return (word << 6 + bits.trailingZeroBitCount - first + Self.bucketCount) % Self.bucketCount
  }

  /// Unlinks one node whose deadline has passed and returns its slot; `nil` if there is none. The caller may set and
  /// clear any node between two calls.
  mutating func nextExpired(now: Milliseconds) -> UInt32? {
    let currentTick = now / Self.tick
    // After a long sleep, one full turn visits every bucket.
    lastTick = max(lastTick, currentTick - Milliseconds(Self.bucketCount))
    while lastTick < currentTick {
      let bucket = Int((lastTick + 1) % Milliseconds(Self.bucketCount))
      var node = heads[bucket]
      while let current = node {
        if current.pointee.deadline <= now {
          unlink(current)
          return current.pointee.slot
        }
        node = current.pointee.next
      }
      lastTick += 1
    }
    return nil
  }

  private mutating func unlink(_ node: UnsafeMutablePointer<TimerNode>) {
    let previous = node.pointee.previous
    let next = node.pointee.next
    if let previous {
      previous.pointee.next = next
    } else {
      let bucket = node.pointee.bucket
      heads[bucket] = next
      if next == nil { occupied[bucket >> 6] &= ~(1 << UInt64(bucket & 63)) }
    }
    next?.pointee.previous = previous
    node.pointee.isLinked = false
    node.pointee.previous = nil
    node.pointee.next = nil
    count -= 1
  }
}
