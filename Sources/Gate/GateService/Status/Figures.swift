/// Formats numbers for people.
public enum Figures {
  /// Returns a duration in its two largest units: `45 s`, `12 min`, `3 h 5 min`, `41 d 3 h`.
  public static func span(seconds: Int64) -> String {
    let seconds = max(0, seconds)
    switch seconds {
    case ..<60: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) min"
    case ..<86_400: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    default: return "\(seconds / 86_400) d \(seconds % 86_400 / 3600) h"
    }
  }

  /// Returns how long ago an instant was, in its largest unit: `now`, `45 s ago`, `3 min ago`, `5 h ago`, `41 d ago`.
  ///
  /// An instant in the future is `now`: clocks of two machines differ.
  public static func ago(seconds: Int64) -> String {
    switch seconds {
    case ..<1: "now"
    case ..<60: "\(seconds) s ago"
    case ..<3600: "\(seconds / 60) min ago"
    case ..<86_400: "\(seconds / 3600) h ago"
    default: "\(seconds / 86_400) d ago"
    }
  }

  /// Returns a size in powers of 1000: `512 B`, `1.5 kB`, `20 MB`.
  public static func bytes(_ count: UInt64) -> String {
    var (value, unit) = (Double(count), 0)
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    while value >= 999.5, unit < units.count - 1 { (value, unit) = (value / 1000, unit + 1) }
    let tenths = Int((value * 10).rounded())
    let digits = unit == 0 || tenths >= 100 ? "\(Int(value.rounded()))" : "\(tenths / 10).\(tenths % 10)"
    return "\(digits) \(units[unit])"
  }

  /// Returns a number with a narrow space between thousands.
  public static func count(_ number: some BinaryInteger) -> String {
    let digits = Array("\(number)")
    return digits.enumerated().map { index, digit in
      index > 0 && (digits.count - index) % 3 == 0 ? "\u{202F}\(digit)" : "\(digit)"
    }.joined()
  }
}
