internal import Glibc
internal import Locking

/// A thread for work that blocks: neither an event loop nor a thread of Swift's pool may.
enum Worker {
  /// Runs `body` on a new detached thread; returns `false` if none can be created.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool { DetachedThread.start(body) == 0 }

  /// Lets the calling thread rest.
  static func pause(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&time, &rest) == -1 && errno == EINTR { time = rest }
  }
}
