internal import Locking

/// Starts threads.
enum Thread {
  /// Runs `body` on a new detached thread.
  ///
  /// - Throws: `SystemCallError` if the system cannot start another thread; `body` does not run then.
  static func start(_ body: @escaping @Sendable () -> Void) throws(SystemCallError) {
    let code = DetachedThread.start(body)
    guard code == 0 else { throw SystemCallError("pthread_create", number: code) }
  }
}
