/// A node of the wheel, kept inside the session that it wakes.
struct TimerNode {
  /// When to wake; meaningless unless `isLinked`.
  var deadline: Milliseconds = 0
  fileprivate(set) var isLinked = false
  fileprivate var previous: UnsafeMutablePointer<TimerNode>?
  fileprivate var next: UnsafeMutablePointer<TimerNode>?
  fileprivate var bucket = 0
  /// What to wake: the slot of the table of the loop.
  var slot: UInt32 = 0
}

/// Coarse deadlines of many sessions: setting and clearing one costs a few instructions and no memory.
///
/// A hashed wheel of 512 buckets of 128 ms. A deadline beyond its turn is met again and put back. Deadlines fire up to
/// one bucket late, never early.
struct TimerWheel {
  static let bucketCount = 512
  static let tick: Milliseconds = 128
  private static let wordCount = bucketCount / UInt64.bitWidth

  private let heads: UnsafeMutablePointer<UnsafeMutablePointer<TimerNode>?>
  /// A bit for each bucket that holds anything: a loop asks before each sleep how long it may be.
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

  /// Nodes stay where they are: they belong to their sessions.
  func deallocate() {
    heads.deallocate()
    occupied.deallocate()
  }

  /// Sets `node` to fire at `deadline`, whatever it was set to before.
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

  /// How long a loop may sleep: until the next bucket that holds anything, or `nil` if none does.
  func delay(from now: Milliseconds) -> Milliseconds? {
    guard count > 0 else { return nil }
    let first = Int((lastTick + 1) % Milliseconds(Self.bucketCount))
    return max(0, (lastTick + 1 + Milliseconds(distance(from: first))) * Self.tick - now)
  }

  /// How many buckets behind `first` the next one stands that holds anything. One does.
  private func distance(from first: Int) -> Int {
    var word = first >> 6
    var bits = occupied[word] & (.max << UInt64(first & 63))
    // The word of the first bucket is met again at the end, for the buckets in front of it.
    for _ in 0..<Self.wordCount {
      if bits != 0 { break }
      word = (word + 1) % Self.wordCount
      bits = occupied[word]
    }
    return (word << 6 + bits.trailingZeroBitCount - first + Self.bucketCount) % Self.bucketCount
  }

  /// Calls `fire` with the slot of each node whose deadline has passed; the node is unset before. `fire` may set and
  /// clear any node.
  mutating func nextExpired(now: Milliseconds) -> UInt32? {
    let currentTick = now / Self.tick
    // After a long sleep one full turn meets every bucket.
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
