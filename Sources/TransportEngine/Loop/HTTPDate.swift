internal import ByteCoding
internal import Glibc

/// The text of `Date` (RFC 9110 section 5.6.7), made at most once a second.
struct HTTPDate {
  private var second: Int64 = .min
  private var known = ""

  mutating func text() -> String {
    let now = Int64(time(nil))
    if now != second {
      second = now
      known = Self.format(now)
    }
    return known
  }

  /// `Sun, 06 Nov 1994 08:49:37 GMT`
  static func format(_ seconds: Int64) -> String {
    let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let day = seconds / 86400
    let rest = seconds % 86400
    let date = CivilDate.date(ofDay: day)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(days[Int(day % 7)]), \(two(date.day)) \(months[Int(date.month) - 1]) \(date.year) "
      + "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60)) GMT"
  }
}
