internal import ByteCoding

/// Formats the dates of HTTP fields (RFC 9110 section 5.6.7).
enum HTTPDate {
  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Returns `time` as an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`. Times before
  /// 1970 become the start of 1970.
  static func text(for time: Timestamp) -> String {
    let (days, second) = max(0, time.seconds).quotientAndRemainder(dividingBy: 86400)
    let (year, month, day) = CivilDate.date(ofDay: days)
    let date = "\(twoDigits(day)) \(months[Int(month) - 1]) \(year)"
    let clock = "\(twoDigits(second / 3600)):\(twoDigits(second / 60 % 60)):\(twoDigits(second % 60))"
    // 1 January 1970 was a Thursday.
    return "\(weekdays[Int(days % 7)]), \(date) \(clock) GMT"
  }

  private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : String(number) }
}
