import Glibc
import Locking
import Testing

@Suite("Detached threads")
struct DetachedThreadTests {
  @Test("A detached thread runs its task concurrently with the thread that started it")
  func runs() async {
    let starter = pthread_self()
    let other: pthread_t = await withCheckedContinuation { continuation in
      #expect(DetachedThread.start { continuation.resume(returning: pthread_self()) } == 0)
    }
    #expect(pthread_equal(starter, other) == 0)
  }
}
