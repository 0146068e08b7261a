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

  private let heads: UnsafeMutablePointer<UnsafeMutablePointer<TimerNode>?>
  private var lastTick: Milliseconds
  private(set) var count = 0

  init(now: Milliseconds) {
    heads = .allocate(capacity: Self.bucketCount)
    heads.initialize(repeating: nil, count: Self.bucketCount)
    lastTick = now / Self.tick
  }

  /// Nodes stay where they are: they belong to their sessions.
  func deallocate() { heads.deallocate() }

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
    node.pointee.isLinked = true
    count += 1
  }

  mutating func cancel(_ node: UnsafeMutablePointer<TimerNode>) {
    if node.pointee.isLinked { unlink(node) }
  }

  /// How long a loop may sleep: until the next bucket that holds anything, or `nil` if none does.
  func delay(from now: Milliseconds) -> Milliseconds? {
    guard count > 0 else { return nil }
    for step in 1...Milliseconds(Self.bucketCount) {
      let turn = lastTick + step
      if heads[Int(turn % Milliseconds(Self.bucketCount))] != nil { return max(0, turn * Self.tick - now) }
    }
    return nil
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
    if let previous { previous.pointee.next = next } else { heads[node.pointee.bucket] = next }
    next?.pointee.previous = previous
    node.pointee.isLinked = false
    node.pointee.previous = nil
    node.pointee.next = nil
    count -= 1
  }
}
