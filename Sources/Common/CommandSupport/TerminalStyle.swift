internal import Glibc

/// What the user's terminal shows: its width, and whether it shows colors.
public enum TerminalStyle {
  /// Whether messages on standard error have colors: it is a terminal that shows them, and `NO_COLOR` is unset or
  /// empty (no-color.org).
  public static var colorsMessages: Bool {
    StandardError.isTerminal && variable("NO_COLOR") == nil && variable("TERM") != "dumb"
  }

  /// The columns of standard output: those of `COLUMNS`, otherwise those of its terminal, otherwise 80.
  public static var columns: Int {
    if let given = variable("COLUMNS").flatMap(Int.init), given > 0 { return given }
    var size = winsize()
    return ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  /// The messages in `lines`, with the first word of each in a color: red for `error:`, yellow for `warning:`, cyan for
  /// `hint:`. Other lines stay as they are.
  public static func colored(messages lines: String) -> String {
    lines.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard let (mark, color) = colors.first(where: { line.hasPrefix($0.mark + " ") }) else { return String(line) }
      return "\u{1B}[\(color)m\(mark)\u{1B}[0m\(line.dropFirst(mark.count))"
    }.joined(separator: "\n")
  }

  /// The parameters of ECMA-48's SGR.
  private static let colors: [(mark: String, color: String)] = [
    ("error:", "1;31"), ("warning:", "33"), ("hint:", "36"),
  ]

  /// The value of an environment variable; `nil` if it is unset or empty.
  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }
}

extension StandardError {
  /// Writes whole lines, with colors if the terminal shows them.
  ///
  /// - Parameter lines: Text without characters that steer a terminal, and without the last line's end.
  public static func write(messages lines: String) {
    write((TerminalStyle.colorsMessages ? TerminalStyle.colored(messages: lines) : lines) + "\n")
  }
}
