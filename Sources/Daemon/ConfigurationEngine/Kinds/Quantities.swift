/// Durations in settings: an integer and one unit.
public enum TimeSpan {
  private static let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)]

  /// Returns the number of milliseconds in `text`.
  public static func milliseconds(_ text: String) throws(InvalidSetting) -> Int {
    let (number, unit) = Digits.split(text)
    guard let number else {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) is not a duration: write a whole number and ms, s, m, h or d")
    }
    if unit.isEmpty {
      throw InvalidSetting(
        "\(InvalidSetting.shortened(text)) has no unit: write ms, s, m, h or d",
        suggestion: number < .max ? "\(number)s" : nil)
    }
    guard let factor = units.first(where: { $0.0 == unit })?.1 else {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) is not a duration: write a whole number and ms, s, m, h or d")
    }
    let (product, overflows) = number.multipliedReportingOverflow(by: factor)
    guard !overflows else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is too long") }
    return product
  }

  /// Returns the shortest form with an integer: `90s`, `12h`.
  public static func text(_ milliseconds: Int) -> String {
    if milliseconds == 0 { return "0s" }
    let unit = units.first { milliseconds % $0.1 == 0 } ?? ("ms", 1)
    return "\(milliseconds / unit.1)\(unit.0)"
  }
}

extension Kind where Value == Duration {
  /// A duration within `range`, in milliseconds.
  public static func duration(_ range: ClosedRange<Int>) -> Kind {
    Kind(
      name: "duration", form: "`\(TimeSpan.text(range.lowerBound))` to `\(TimeSpan.text(range.upperBound))`",
      schema: .matching("^[0-9]+(ms|s|m|h|d)$"), example: TimeSpan.text(range.lowerBound)
    ) { text throws(InvalidSetting) in
      let value = try TimeSpan.milliseconds(text)
      guard range.contains(value) else {
        throw InvalidSetting(
          "\(InvalidSetting.shortened(text)) is out of range: \(TimeSpan.text(range.lowerBound)) to \(TimeSpan.text(range.upperBound))"
        )
      }
      return .milliseconds(value)
    }
  }
}

extension Kind where Value == Duration? {
  /// A duration, or `off`, which is `nil`.
  public static func durationOrOff(_ range: ClosedRange<Int>) -> Kind {
    let duration = Kind<Duration>.duration(range)
    return Kind(
      name: "duration", form: "`off`, or \(duration.form)", schema: .offOr("[0-9]+(ms|s|m|h|d)"),
      example: "off"
    ) { text throws(InvalidSetting) in
      if text == "off" { return nil }
      // How other programs write it.
      guard !["0", "false", "none", "never", "unlimited", "OFF", "Off"].contains(text) else {
        throw InvalidSetting("\(text) is not a duration: write off for none", suggestion: "off")
      }
      return try duration.read(text)
    }
  }
}

/// Sizes in settings: an integer, and B, KiB, MiB, GiB or no unit for bytes.
public enum Size {
  private static let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]

  /// Returns the number of bytes in `text`.
  public static func read(_ text: String) throws(InvalidSetting) -> Int {
    let (number, unit) = Digits.split(text)
    guard let number else {
      throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a size: write a whole number and B, KiB, MiB or GiB")
    }
    guard let factor = unit.isEmpty ? 1 : units.first(where: { $0.0 == unit })?.1 else {
      let meant = ["k": "KiB", "m": "MiB", "g": "GiB"][unit.prefix(1).lowercased()]
      throw InvalidSetting(
        "\(InvalidSetting.quoted(String(unit))) is not a size unit: use B, KiB, MiB or GiB",
        suggestion: number < .max ? meant.map { "\(number)\($0)" } : nil)
    }
    let (product, overflows) = number.multipliedReportingOverflow(by: factor)
    guard !overflows else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is too large") }
    return product
  }

  /// Returns the shortest form with an integer: `32MiB`.
  public static func text(_ bytes: Int) -> String {
    let unit = units.first { bytes % $0.1 == 0 } ?? ("B", 1)
    return "\(bytes / unit.1)\(unit.0)"
  }
}
