internal import Glibc

/// A thread for work that blocks: neither an event loop nor a thread of Swift's pool may.
enum Worker {
  private final class Task {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Runs `body` on a new thread that nobody waits for; `false` if there is none to be had.
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
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
    if code != 0 { task.release() }
    return code == 0
  }

  /// Lets the calling thread rest.
  static func pause(for duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while nanosleep(&time, &rest) == -1 && errno == EINTR { time = rest }
  }
}
