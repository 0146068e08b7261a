#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A value that only one thread at a time can access.
///
/// `Synchronization.Mutex` does the same, but on Linux the thread sanitizer does not recognize it and reports each
/// use as a race. It recognizes the locks of pthreads.
public final class LockedValue<Value: Sendable>: @unchecked Sendable {
  // Guarded by `mutex`.
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

  /// Returns the result of `body` for the value, while no other thread can access it. `body` must not wait, and must
  /// not take the same lock.
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
