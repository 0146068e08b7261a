internal import CLinux
internal import Glibc

/// A thread with a task.
enum Thread {
  private final class Task {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Runs `body` on a new thread that nobody waits for.
  ///
  /// - Throws: when the system has no more threads; `body` is then not run.
  static func start(_ body: @escaping @Sendable () -> Void) throws(SystemCallError) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    var thread = pthread_t()
    let task = Unmanaged.passRetained(Task(body))
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Task>.fromOpaque(argument).takeRetainedValue().body()
        return nil
      }, task.toOpaque())
    guard code != 0 else { return }
    task.release()
    throw SystemCallError("pthread_create", number: code)
  }
}
