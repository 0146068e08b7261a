internal import CLibSecret
internal import Dispatch

/// A cancellable of GIO that is cancelled after some time.
///
/// Unchecked: its functions may be called from any thread, and the pointer never changes.
final class TimeLimit: @unchecked Sendable {
  private let cancellable: UnsafeMutablePointer<GCancellable>
  /// The end of the time.
  let end: DispatchTime

  /// Starts the time.
  init(_ limit: Duration) {
    // Aborts without memory, as GLib does.
    cancellable = g_cancellable_new()
    let (seconds, fraction) = limit.components
    let nanoseconds = Int(clamping: seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let delay = nanoseconds.overflow ? Int.max : nanoseconds.partialValue + Int(fraction / 1_000_000_000)
    end = .now() + .nanoseconds(delay)
    DispatchQueue.global().asyncAfter(deadline: end) { [weak self] in self?.cancel() }
  }

  deinit { g_object_unref(cancellable) }

  private func cancel() { g_cancellable_cancel(cancellable) }

  /// Lends the object to `body`.
  func withPointer<R>(_ body: (UnsafeMutablePointer<GCancellable>) throws(SecretServiceError) -> R)
    throws(SecretServiceError) -> R
  {
    defer { withExtendedLifetime(self) {} }
    return try body(cancellable)
  }
}
