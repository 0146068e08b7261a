internal import Glibc

/// Bytes that the kernel did not take yet. Owns memory only while it holds any.
struct Outbox {
  private var base: UnsafeMutableRawPointer?
  private var start = 0
  private var end = 0
  private(set) var capacity = 0

  var isEmpty: Bool { start == end }
  var count: Int { end - start }
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base.map { $0 + start }, count: end - start) }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    if end + bytes.count > capacity { makeRoom(for: bytes.count) }
    guard let base else { return }
    memcpy(base + end, source, bytes.count)
    end += bytes.count
  }

  /// Forgets the first `count` bytes, and the memory once nothing is left.
  mutating func removeFirst(_ count: Int) {
    start += count
    if start == end { removeAll() }
  }

  mutating func removeAll() {
    free(base)
    base = nil
    start = 0
    end = 0
    capacity = 0
  }

  private mutating func makeRoom(for extra: Int) {
    let held = end - start
    // What is stalled is sized to the byte: many readers may stall at the same time. Only an outbox that goes on to grow
    // is given room ahead, or each of many small pieces would move all the others.
    let wanted = held + max(extra, held / 2)
    guard let fresh = malloc(wanted) else { fatalError("out of memory") }  // malloc does not fail under overcommit
    if let base { memcpy(fresh, base + start, held) }
    free(base)
    base = fresh
    start = 0
    end = held
    capacity = wanted
  }
}
