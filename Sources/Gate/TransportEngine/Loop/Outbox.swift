internal import Glibc

/// Bytes that the kernel has not taken yet. Owns memory only while it contains any.
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

  /// Drops the first `count` bytes, and the memory if none are left.
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
    // The first allocation is exact, because many readers may stall at the same time. Only an outbox that keeps
    // growing gets extra room; otherwise each of many small pieces would move all the others.
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
