internal import NIOCore
internal import NIOPosix

/// Delays responses to unauthenticated requests to a whole multiple of a time step after the request. Their timing
/// must not reveal whether an account exists.
///
/// Decoding a row that exists takes some microseconds longer than finding none, and many requests would reveal that.
/// With the delay, such a difference is visible only if it moves a response to the next step. The delay uses no
/// processor time and no database connection.
enum ResponseTimeQuantizer {
  static let step = Duration.milliseconds(10)

  /// Waits for the next step after `start`.
  static func wait(since start: ContinuousClock.Instant) async {
    let lines = (ContinuousClock.now - start) / step
    let end = start + step * lines.rounded(.up)
    // A timer of the event loop that runs this task needs no other thread.
    if let loop = MultiThreadedEventLoopGroup.currentEventLoop {
      try? await loop.scheduleTask(in: TimeAmount(end - .now)) {}.futureResult.get()
    } else {
      try? await Task.sleep(until: end, tolerance: .zero, clock: .continuous)
    }
  }
}
