import Dispatch
import Locking
import Testing

@Suite("Locked values")
struct LockedValueTests {
  private struct TestError: Error, Equatable {}

  @Test("No concurrent change is lost")
  func exclusive() {
    let count = LockedValue(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<10_000 { count.withLock { $0 += 1 } }
    }
    #expect(count.withLock { $0 } == 80_000)
  }

  @Test("An error releases the lock and keeps the changes made before it")
  func errors() {
    let value = LockedValue(1)
    #expect(throws: TestError()) {
      try value.withLock { (value: inout Int) throws(TestError) in
        value = 2
        throw TestError()
      }
    }
    #expect(value.withLock { $0 } == 2)
  }
}
