/// When to send answers that must not reveal whether an account exists: at whole multiples of a step after the
/// request.
///
/// Found rows have to be decoded, and absent ones not: a difference of some microseconds, which enough requests bring
/// to light. On the grid such a difference shows only where it pushes an answer over a line. Waiting costs no
/// processor time and keeps no connection of a database.
enum ResponseTimeQuantizer {
  static let step = Duration.milliseconds(10)

  /// Waits for the next line of the grid that began at `start`. Does not wait for who has gone meanwhile.
  static func wait(since start: ContinuousClock.Instant) async {
    let lines = (ContinuousClock.now - start) / step
    try? await Task.sleep(until: start + step * lines.rounded(.up), tolerance: .zero, clock: .continuous)
  }
}
