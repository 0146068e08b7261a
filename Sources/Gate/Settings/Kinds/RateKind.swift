extension Kind where Value == GateSettings.Rate? {
  /// A rate such as `60/1m`, or `off`, which is `nil`.
  static var rateOrOff: Kind {
    Kind(
      name: "rate", form: "`off`, or a rate such as `60/1m`: a burst of 1 to 10000, refilled over `1s` to `1d`",
      schema: .matching("^(off|[0-9]+/[0-9]+(ms|s|m|h|d))$"), example: "60/1m"
    ) { text throws(InvalidSetting) in
      if text == "off" { return nil }
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, let count = Digits.value(of: parts[0]) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a rate: write a number, a slash and a duration")
      }
      guard (1...10_000).contains(count) else { throw InvalidSetting("\(count) is out of range: 1 to 10000") }
      // `60/m` is a common way to write a rate.
      guard parts[1].first?.isNumber == true else {
        let meant = "\(count)/1\(parts[1])"
        let isRate = (try? TimeSpan.milliseconds("1\(parts[1])")) != nil
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not a rate: write a number, a slash and a duration",
          suggestion: isRate ? meant : nil)
      }
      let span = try Kind<Duration>.duration(1000...86_400_000).read(String(parts[1]))
      return GateSettings.Rate(count: count, span: span)
    }
  }
}

extension Kind where Value == Int? {
  /// A count, or `off`, which is `nil`.
  static func countOrOff(_ range: ClosedRange<Int>) -> Kind {
    let integer = Kind<Int>.integer(range)
    return Kind(
      name: "integer", form: "`off`, or \(integer.form)", schema: .integer(range, or: "off"), example: "off"
    ) { text throws(InvalidSetting) in
      text == "off" ? nil : try integer.read(text)
    }
  }
}
