import Dispatch
import Locking
import Testing

@Suite("LockedValue values")
struct LockedValueTests {
  private struct Refusal: Error, Equatable {}

  @Test("No change of many threads at once is lost")
  func exclusive() {
    let count = LockedValue(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<10_000 { count.withLock { $0 += 1 } }
    }
    #expect(count.withLock { $0 } == 80_000)
  }

  @Test("An error leaves the lock open, and what was changed before it stays")
  func errors() {
    let value = LockedValue(1)
    #expect(throws: Refusal()) {
      try value.withLock { (value: inout Int) throws(Refusal) in
        value = 2
        throw Refusal()
      }
    }
    #expect(value.withLock { $0 } == 2)
  }
}
