internal import CLinux
internal import Dispatch
internal import Locking

/// A thread that runs one closure after the other and sleeps in between.
///
/// On a busy processor, the thread runs when the others wait or have had their turn, and interrupts none as soon as it has
/// work (SCHED_BATCH, sched(7)). So more jobs come together for one batch; a processor with nothing to do runs it at once.
///
/// The thread ends after this object is released and all closures have run. Nothing waits for it: the process may end
/// at any time.
final class WorkerThread: Sendable {
  /// The closures that the thread has yet to run, shared with the thread.
  private final class Inbox: Sendable {
    private let closures = LockedValue<[@Sendable () -> Void]>([])
    /// Its value is the number of closures, and one more for the end.
    private let arrivals = DispatchSemaphore(value: 0)

    func add(_ closure: @escaping @Sendable () -> Void) {
      closures.withLock { $0.append(closure) }
      arrivals.signal()
    }

    func end() { arrivals.signal() }

    /// Waits for the next closure; `nil`: there is none any more.
    func next() -> (@Sendable () -> Void)? {
      arrivals.wait()
      return closures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }
  }

  /// SQLite and the closures need less. A stack is no part of a huge page, so only what is used takes memory.
  private static let stackSize = 1 << 20

  private let inbox = Inbox()

  /// Starts a thread.
  ///
  /// - Parameter name: The name of the thread in `top -H` and in debuggers. Linux shows its first 15 bytes.
  /// - Returns: `nil` if the system cannot start another thread.
  init?(name: String) {
    let code = DetachedThread.start(stackSize: Self.stackSize) { [inbox] in
      shim_name_thread(name)
      shim_schedule_as_batch()
      while let closure = inbox.next() { closure() }
    }
    guard code == 0 else { return nil }
  }

  deinit { inbox.end() }

  /// Runs `closure` on the thread, after those that were added before. Returns at once. May be called from any thread.
  func run(_ closure: @escaping @Sendable () -> Void) { inbox.add(closure) }
}
