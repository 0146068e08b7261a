internal import Locking

/// A thread with a task.
enum Thread {
  /// Runs `body` on a new detached thread.
  ///
  /// - Throws: when the system has no more threads; `body` is then not run.
  static func start(_ body: @escaping @Sendable () -> Void) throws(SystemCallError) {
    let code = DetachedThread.start(body)
    guard code == 0 else { throw SystemCallError("pthread_create", number: code) }
  }
}
