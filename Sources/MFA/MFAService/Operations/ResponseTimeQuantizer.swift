/// Delays responses to unauthenticated requests to a whole multiple of a time step after the request. Their timing
/// must not reveal whether an account exists.
///
/// Decoding a row that exists takes some microseconds longer than finding none, and many requests would reveal that.
/// With the delay, such a difference is visible only if it moves a response to the next step. The delay uses no
/// processor time and no database connection.
enum ResponseTimeQuantizer {
  static let step = Duration.milliseconds(10)

  /// Waits for the next step after `start`. Returns immediately if the task is cancelled, because the client has
  /// gone.
  static func wait(since start: ContinuousClock.Instant) async {
    let lines = (ContinuousClock.now - start) / step
    try? await Task.sleep(until: start + step * lines.rounded(.up), tolerance: .zero, clock: .continuous)
  }
}
