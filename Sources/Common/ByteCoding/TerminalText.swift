/// Makes text from servers, clients and files safe to write to a terminal.
///
/// Control characters steer a terminal. Format characters (Unicode's general category `Cf`, such as U+202E) and
/// separators of lines and paragraphs change the order in which text is read, hide a part of it, or begin a line.
public enum TerminalText {
  /// Whether `scalar` is a control or format character, or separates lines or paragraphs.
  public static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// `text` on one line, with U+FFFD for each unsafe character. A joiner between two emoji, as in that of a family, is
  /// kept: it joins them to one picture and hides nothing.
  public static func printable(_ text: String) -> String { replacing(text, keepsEmoji: true) { _ in "\u{FFFD}" } }

  /// `text` with U+FFFD for each unsafe character other than line feeds and tabs.
  public static func printableLines(_ text: String) -> String {
    replacing(text, keepsEmoji: true) { $0 == "\n" || $0 == "\t" ? String($0) : "\u{FFFD}" }
  }

  /// A JSON text that has the same value as `json`, with each unsafe character of its strings escaped.
  ///
  /// - Parameter json: a JSON text whose only unsafe characters outside strings are line feeds.
  public static func escaped(json: String) -> String {
    replacing(json) { scalar in
      if scalar == "\n" { return "\n" }
      return String(scalar).utf16.map { unit in
        let digits = String(unit, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }.joined()
    }
  }

  private static func replacing(
    _ text: String, keepsEmoji: Bool = false, by replacement: (Unicode.Scalar) -> String
  ) -> String {
    let scalars = text.unicodeScalars
    guard scalars.contains(where: isUnsafe) else { return text }
    var result = String.UnicodeScalarView()
    for index in scalars.indices {
      let scalar = scalars[index]
      if isUnsafe(scalar), !(keepsEmoji && joinsEmoji(at: index, in: scalars)) {
        result.append(contentsOf: replacement(scalar).unicodeScalars)
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }

  /// Whether the scalar at `index` is U+200D between two emoji (Unicode Technical Standard 51).
  private static func joinsEmoji(at index: String.Index, in scalars: String.UnicodeScalarView) -> Bool {
    guard scalars[index] == "\u{200D}", index > scalars.startIndex else { return false }
    var before = scalars.index(before: index)
    // The variation selector of a picture stands between the emoji and the joiner.
    if scalars[before] == "\u{FE0F}", before > scalars.startIndex { before = scalars.index(before: before) }
    let after = scalars.index(after: index)
    guard after < scalars.endIndex else { return false }
    return [scalars[before], scalars[after]].allSatisfy { !$0.isASCII && $0.properties.isEmoji }
  }
}
