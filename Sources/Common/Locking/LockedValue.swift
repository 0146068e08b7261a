#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A value that one thread at a time can reach.
///
/// `Synchronization.Mutex` does the same where it exists, but on Linux the thread sanitizer does not see it and takes
/// each of its uses for a race. It does see the locks of pthreads.
public final class LockedValue<Value: Sendable>: @unchecked Sendable {
  // LockedValue by `mutex`.
  private var value: Value
  // On the heap, since a lock must not move.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  /// Guards `value` from now on.
  public init(_ value: Value) {
    self.value = value
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    let code = pthread_mutex_init(mutex, nil)
    // Fails for want of memory only, without which Swift does not go on either.
    precondition(code == 0, "no lock: \(code)")
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deinitialize(count: 1)
    mutex.deallocate()
  }

  /// Returns what `body` makes of the value, while no other thread can reach it. `body` must not wait, nor take the
  /// same lock.
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
