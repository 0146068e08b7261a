internal import Glibc
internal import Locking

/// A thread for blocking work, which must not run on an event loop or on Swift's thread pool.
enum Worker {
  /// Runs `body` on a new detached thread; returns `false` if the thread cannot be created.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool { DetachedThread.start(body) == 0 }

  /// Blocks the calling thread for `duration`.
  static func pause(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&time, &rest) == -1 && errno == EINTR { time = rest }
  }
}
