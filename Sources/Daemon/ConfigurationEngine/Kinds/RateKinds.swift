/// A rate limit: a burst of `count`, refilled over `period`.
public struct RateSetting: Sendable, Hashable {
  public var count: Int
  /// 1 second to 1 day.
  public var period: Duration
}

extension Kind where Value == RateSetting {
  /// A rate such as `60/1m`, with a burst within `counts`.
  public static func rate(_ counts: ClosedRange<Int>) -> Kind {
    let bounds = "\(counts.lowerBound) to \(counts.upperBound)"
    return Kind(
      name: "rate", form: "a rate such as `60/1m`: a burst of \(bounds), refilled over `1s` to `1d`",
      schema: .matching("^[0-9]+/[0-9]+(ms|s|m|h|d)$"), example: "60/1m"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, let count = Digits.value(of: parts[0]) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a rate: write a number, a slash and a duration")
      }
      guard counts.contains(count) else { throw InvalidSetting("\(count) is out of range: \(bounds)") }
      // `60/m` is a common way to write a rate.
      guard parts[1].first?.isNumber == true else {
        let meant = "\(count)/1\(parts[1])"
        let isRate = (try? TimeSpan.milliseconds("1\(parts[1])")) != nil
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not a rate: write a number, a slash and a duration",
          suggestion: isRate ? meant : nil)
      }
      let period = try Kind<Duration>.duration(1000...86_400_000).read(String(parts[1]))
      return RateSetting(count: count, period: period)
    }
  }
}

extension Kind where Value == RateSetting? {
  /// A rate such as `60/1m`, or `off`, which is `nil`.
  public static func rateOrOff(_ counts: ClosedRange<Int>) -> Kind {
    let rate = Kind<RateSetting>.rate(counts)
    return Kind(
      name: "rate", form: "`off`, or \(rate.form)", schema: .offOr("[0-9]+/[0-9]+(ms|s|m|h|d)"),
      example: "60/1m"
    ) { text throws(InvalidSetting) in
      text == "off" ? nil : try rate.read(text)
    }
  }
}
