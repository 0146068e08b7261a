import Glibc
import Locking
import Testing

@Suite("A thread that nobody waits for")
struct DetachedThreadTests {
  @Test("runs its task beside the one that started it")
  func runs() async {
    let starter = pthread_self()
    let other: pthread_t = await withCheckedContinuation { continuation in
      #expect(DetachedThread.start { continuation.resume(returning: pthread_self()) } == 0)
    }
    #expect(pthread_equal(starter, other) == 0)
  }
}
