internal import ByteCoding

/// Decides when a warning that stays true is logged again: once a day.
struct DailyReminder {
  static let interval = Duration.seconds(86_400)

  private var last: Timestamp

  /// - Parameter last: when the warning was logged first.
  init(last: Timestamp) { self.last = last }

  /// Whether the warning is due at `now`; if so, the next one is due a day later. A clock that was set back does not
  /// silence it.
  mutating func isDue(at now: Timestamp) -> Bool {
    guard now < last || now.since(last) >= Self.interval else { return false }
    last = now
    return true
  }
}
