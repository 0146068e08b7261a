internal import ByteCoding

extension Kind where Value == Bool {
  /// Other YAML 1.1 booleans are refused, because many tools read them as strings.
  public static var boolean: Kind {
    Kind(name: "boolean", form: "`true` or `false`", schema: .oneOf(["true", "false"]), example: "true") {
      text throws(InvalidSetting) in
      switch text {
      case "true": return true
      case "false": return false
      default:
        let meant = ["yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"]
        let lowered = text.lowercased()
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) is not true or false",
          suggestion: ["true", "false"].contains(lowered) ? lowered : meant[lowered])
      }
    }
  }
}

extension Kind where Value == Int {
  /// A decimal number without sign, point or separators.
  public static func integer(_ range: ClosedRange<Int>) -> Kind {
    let form =
      range.lowerBound == range.upperBound ? "`\(range.lowerBound)`" : "\(range.lowerBound) to \(range.upperBound)"
    return Kind(name: "integer", form: form, schema: .integer(range), example: "\(range.lowerBound)") {
      text throws(InvalidSetting) in
      guard Digits.isNumber(text) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a whole number")
      }
      guard let value = Digits.value(of: text), range.contains(value) else {
        throw InvalidSetting(
          "\(InvalidSetting.shortened(text)) is out of range: \(range.lowerBound) to \(range.upperBound)")
      }
      return value
    }
  }

  /// A number of bytes.
  public static func size(_ range: ClosedRange<Int>) -> Kind {
    let form = "`\(Size.text(range.lowerBound))` to `\(Size.text(range.upperBound))`; units B, KiB, MiB, GiB"
    let schema = ValueSchema(types: ["integer", "string"], pattern: "^[0-9]+(B|KiB|MiB|GiB)?$", range: range)
    return Kind(name: "size", form: form, schema: schema, example: Size.text(range.lowerBound)) {
      text throws(InvalidSetting) in
      let value = try Size.read(text)
      guard range.contains(value) else {
        throw InvalidSetting(
          "\(InvalidSetting.shortened(text)) is out of range: \(Size.text(range.lowerBound)) to \(Size.text(range.upperBound))"
        )
      }
      return value
    }
  }
}

extension Kind where Value == Int? {
  /// A count, or `auto`, which is `nil`.
  public static func countOrAuto(_ range: ClosedRange<Int>) -> Kind {
    let integer = Kind<Int>.integer(range)
    return Kind(
      name: "integer", form: "`auto`, or \(integer.form)", schema: .integer(range, or: "auto"), example: "auto"
    ) { text throws(InvalidSetting) in
      text == "auto" ? nil : try integer.read(text)
    }
  }
}

extension Kind where Value == Int? {
  /// A count, or `off`, which is `nil`.
  public static func countOrOff(_ range: ClosedRange<Int>) -> Kind {
    let integer = Kind<Int>.integer(range)
    return Kind(
      name: "integer", form: "`off`, or \(integer.form)", schema: .integer(range, or: "off"), example: "off"
    ) { text throws(InvalidSetting) in
      text == "off" ? nil : try integer.read(text)
    }
  }
}

extension Kind where Value == String {
  /// Any non-empty text without control characters.
  public static var text: Kind { text(form: "text") }

  /// Any non-empty text without control characters, described by `form`.
  public static func text(form: String) -> Kind {
    Kind(name: "text", form: form, schema: .anyText) { text throws(InvalidSetting) in
      guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) contains control characters")
      }
      return text
    }
  }

  /// The path of a file. The layer has already made it absolute.
  public static var file: Kind {
    Kind(name: "file", form: "a path", isPath: true, example: "file.pem") { text throws(InvalidSetting) in
      guard !text.utf8.contains(0) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) contains a NUL character")
      }
      return text
    }
  }
}

extension Kind where Value == UInt16 {
  /// A TCP port; 0 selects any free one.
  public static var port: Kind {
    Kind(name: "port", form: "0 to 65535", schema: .integer(0...65535), example: "6200") {
      text throws(InvalidSetting) in
      guard let value = Digits.value(of: text), let port = UInt16(exactly: value) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a port number, 0 to 65535")
      }
      return port
    }
  }
}

extension Kind where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
  /// One of the words of an enumeration.
  public static func choice() -> Kind {
    .oneOf(Value.allCases.map { ($0.rawValue, $0) })
  }
}

extension Kind {
  /// One of a few words, each with its value.
  public static func oneOf(_ choices: [(word: String, value: Value)]) -> Kind {
    let words = choices.map(\.word)
    let form = words.map { "`\($0)`" }.joined(separator: words.count == 2 ? " or " : ", ")
    return Kind(name: "choice", form: form, schema: .oneOf(words), example: words.first) {
      text throws(InvalidSetting) in
      if let choice = choices.first(where: { $0.word == text }) { return choice.value }
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) is not one of \(words.joined(separator: ", "))",
        suggestion: Suggestions.nearest(to: text, in: words))
    }
  }
}

extension Kind where Value == String {
  /// One of `words`.
  public static func word(_ words: String...) -> Kind { .oneOf(words.map { ($0, $0) }) }
}

extension Kind where Value == Bool {
  /// `on` or `off`.
  public static var onOrOff: Kind { .oneOf([("on", true), ("off", false)]) }
}

/// Numbers in settings: only ASCII digits.
public enum Digits {
  /// The value of `text`; `nil` if it is not a number, or too large.
  public static func value(of text: some StringProtocol) -> Int? {
    isNumber(text) ? Int(text) : nil
  }

  /// Whether `text` is digits alone, however many.
  public static func isNumber(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  /// Splits `text` after its leading digits. A number that is too large is `Int.max`.
  public static func split(_ text: String) -> (number: Int?, unit: Substring) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    return (isNumber(digits) ? Int(digits) ?? .max : nil, text[digits.endIndex...])
  }
}
