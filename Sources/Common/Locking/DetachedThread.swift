#if canImport(Glibc)
  internal import Glibc

  /// Threads for blocking calls, which must not run on an event loop or on a thread of Swift's pool.
  public enum DetachedThread {
    private final class Task {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Runs `body` on a new detached thread.
    ///
    /// - Parameter stackSize: The size of its stack in bytes; `nil`: the system's default, which is 8 MiB.
    /// - Returns: 0, or the error number (`EAGAIN`) if no thread can be created; `body` then does not run.
    public static func start(stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void) -> Int32 {
      var attributes = pthread_attr_t()
      pthread_attr_init(&attributes)
      pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
      if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
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
      return code
    }
  }
#endif
