extension Timestamp: CustomStringConvertible {
  /// The instant as RFC 3339 writes it, in UTC, with as many fraction digits (0, 3, 6 or 9) as it needs.
  public var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(32)
    append(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the same text as `description`, without an intermediate string, for log lines.
  public func append(to bytes: inout [UInt8]) {
    let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86400)
    // The start of the first day is below the least `Int64`.
    let (days, second) = remainder < 0 ? (quotient - 1, remainder + 86400) : (quotient, remainder)
    let (year, month, day) = CivilDate.date(ofDay: days)
    // A year has at most 12 digits, so that the text has at most 38 bytes.
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 48) { text in
      var end = 0
      func put(_ mark: UInt8) {
        text[end] = mark
        end += 1
      }
      func put(twoDigits number: Int64, after mark: UInt8) {
        put(mark)
        put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
        put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
      }
      if year < 0 { put(UInt8(ascii: "-")) }
      DecimalDigits.write(year.magnitude, width: 4, to: text, at: &end)
      put(twoDigits: month, after: UInt8(ascii: "-"))
      put(twoDigits: day, after: UInt8(ascii: "-"))
      put(twoDigits: second / 3600, after: UInt8(ascii: "T"))
      put(twoDigits: second / 60 % 60, after: UInt8(ascii: ":"))
      put(twoDigits: second % 60, after: UInt8(ascii: ":"))
      if let (fraction, width) = fraction {
        put(UInt8(ascii: "."))
        DecimalDigits.write(fraction.magnitude, width: width, to: text, at: &end)
      }
      put(UInt8(ascii: "Z"))
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[..<end]))
    }
  }

  /// The fraction of the second in the fewest of 3, 6 or 9 digits; `nil` if it is zero.
  private var fraction: (value: Int64, width: Int)? {
    if nanoseconds == 0 { return nil }
    if nanoseconds % 1_000_000 == 0 { return (Int64(nanoseconds / 1_000_000), 3) }
    return nanoseconds % 1000 == 0 ? (Int64(nanoseconds / 1000), 6) : (Int64(nanoseconds), 9)
  }

  /// Parses an RFC 3339 date-time; `nil` for other text.
  ///
  /// `T` and `Z` may have either case. A fraction has 1 to 9 digits or is missing. The offset is `Z`, or hours and
  /// minutes. A leap second (`:60`) counts as the second after `:59`. In UTC, too, the year is between 0000 and 9999.
  public init?(rfc3339 text: some StringProtocol) {
    var scanner = DigitScanner(text)
    guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
      let day = scanner.number(2), scanner.take("T", or: "t"),
      let hour = scanner.number(2), scanner.take(":"), let minute = scanner.number(2), scanner.take(":"),
      let second = scanner.number(2),
      (1...12).contains(month), (1...CivilDate.days(inMonth: month, of: year)).contains(day),
      hour < 24, minute < 60, second <= 60,
      let nanoseconds = scanner.fraction(), let offset = scanner.offset(), scanner.isAtEnd
    else { return nil }
    let days = CivilDate.day(year: year, month: month, day: day)
    let seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset * 60
    // An offset or a leap second can lead to a year that has no four digits.
    guard
      (CivilDate.day(year: 0, month: 1, day: 1) * 86400..<CivilDate.day(year: 10_000, month: 1, day: 1) * 86400)
        .contains(seconds)
    else { return nil }
    self.init(seconds: seconds, nanoseconds: nanoseconds)
  }
}

/// Days of the proleptic Gregorian calendar, counted from 1970-01-01.
public enum CivilDate {
  /// The number of days from 1970-01-01 to the given date.
  public static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
    // Years are counted from March, so that the leap day is the last of its year.
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  /// The date that is `day` days after 1970-01-01.
  public static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }

  /// How many days `month` (1 to 12) of `year` has.
  public static func days(inMonth month: Int64, of year: Int64) -> Int64 {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// Reads fixed-width numbers from the front of a text.
private struct DigitScanner {
  private var rest: Substring.UTF8View

  init(_ text: some StringProtocol) { rest = Substring(text).utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ character: Unicode.Scalar) -> Bool { takeOne(of: [character]) }
  mutating func take(_ first: Unicode.Scalar, or second: Unicode.Scalar) -> Bool { takeOne(of: [first, second]) }

  private mutating func takeOne(of characters: [Unicode.Scalar]) -> Bool {
    guard let next = rest.first, characters.contains(Unicode.Scalar(next)) else { return false }
    rest.removeFirst()
    return true
  }

  mutating func number(_ width: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<width {
      guard let digit = nextDigit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  private mutating func nextDigit() -> Int64? {
    guard let next = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(next) else { return nil }
    rest.removeFirst()
    return Int64(next - UInt8(ascii: "0"))
  }

  /// Nanoseconds, 0 if there is no fraction.
  mutating func fraction() -> Int64? {
    guard take(".") else { return 0 }
    var value: Int64 = 0
    var digits = 0
    while digits < 9, let digit = nextDigit() {
      value = value * 10 + digit
      digits += 1
    }
    guard digits > 0 else { return nil }
    for _ in digits..<9 { value *= 10 }
    return value
  }

  /// Minutes east of UTC.
  mutating func offset() -> Int64? {
    if take("Z", or: "z") { return 0 }
    let sign: Int64 = take("+") ? 1 : -1
    guard sign == 1 || take("-"), let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60
    else { return nil }
    return sign * (hours * 60 + minutes)
  }
}
