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

  /// The value of an environment variable; `nil` if it is unset or empty.
  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name) else { return nil }
    let text = String(cString: value)
    return text.isEmpty ? nil : text
  }
}
