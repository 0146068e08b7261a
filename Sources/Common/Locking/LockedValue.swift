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
  // Guarded by `mutex`, which makes the dynamic check of exclusive access to a property superfluous.
  @usableFromInline
  let value: UnsafeMutablePointer<Value>
  // On the heap, since a lock must not move.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  /// Guards `value` from now on.
  public init(_ value: Value) {
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    let code = pthread_mutex_init(mutex, nil)
    // Fails for want of memory only, without which Swift does not go on either.
    precondition(code == 0, "no lock: \(code)")
  }

  deinit {
    value.deinitialize(count: 1)
    value.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deinitialize(count: 1)
    mutex.deallocate()
  }

  /// Returns the result of `body` for the value, while no other thread can access it. `body` must not wait, and must
  /// not take the same lock.
  @inlinable
  public func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    lock()
    defer { unlock() }
    return try body(&value.pointee)
  }

  @usableFromInline
  func lock() { pthread_mutex_lock(mutex) }

  @usableFromInline
  func unlock() { pthread_mutex_unlock(mutex) }
}
