/// The help of a command, as the terminal shows it.
enum HelpText {
  /// `text` with its usage line broken at blanks: the parser wraps everything else.
  static func fitted(_ text: String, columns: Int) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.hasPrefix("USAGE: ") && line.count > columns ? wrapped(line, columns: columns) : String(line)
    }.joined(separator: "\n")
  }

  /// Breaks before an argument, never between an option and its value, and indents the lines after the first.
  private static func wrapped(_ line: Substring, columns: Int) -> String {
    var lines: [String] = []
    var current = ""
    for word in arguments(of: line) {
      if !current.isEmpty, current.count + 1 + word.count > columns {
        lines.append(current)
        current = "         " + word
      } else {
        current += current.isEmpty ? word : " " + word
      }
    }
    return (lines + [current]).joined(separator: "\n")
  }

  /// The words of a usage line, with what is in brackets or after an option in one piece.
  private static func arguments(of line: Substring) -> [String] {
    var arguments: [String] = []
    var depth = 0
    for word in line.split(separator: " ") {
      if depth > 0 || word.hasPrefix("<") && arguments.last?.hasPrefix("-") == true {
        arguments[arguments.count - 1] += " " + word
      } else {
        arguments.append(String(word))
      }
      depth += word.count { $0 == "[" } - word.count { $0 == "]" }
    }
    return arguments
  }
}
