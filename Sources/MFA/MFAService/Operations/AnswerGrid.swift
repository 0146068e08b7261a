/// When answers leave that are given to whoever the gate lets in, and that must not tell who has an account: at whole
/// multiples of a step behind their question.
///
/// Rows that are found have to be decoded, and rows that are not do not: some microseconds, which enough questions bring
/// to light. On the grid such differences are seen only where they push an answer over a line of it. Waiting costs no
/// processor time and keeps no connection of a database.
enum AnswerGrid {
  static let step = Duration.milliseconds(10)

  /// Waits for the next line of the grid that began at `start`. Does not wait for who has gone meanwhile.
  static func wait(since start: ContinuousClock.Instant) async {
    let lines = (ContinuousClock.now - start) / step
    try? await Task.sleep(until: start + step * lines.rounded(.up), tolerance: .zero, clock: .continuous)
  }
}
