internal import ByteCoding
internal import Glibc

/// Interaction with a person at a terminal.
enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Asks on standard error; only the answers `y` and `yes` confirm.
  static func confirms(_ question: String) -> Bool {
    Progress.write("\(question) [y/N] ")
    let answer = readLine()?.lowercased()
    return answer == "y" || answer == "yes"
  }
}

/// Shows the progress of long work on one line of a terminal. Prints nothing elsewhere.
struct Progress {
  private let unit: String
  private let isShown = Terminal.isTerminal(STDERR_FILENO)

  init(of unit: String) { self.unit = unit }

  func show(_ count: Int, of total: Int) {
    if isShown { Self.write("\r\(count) of \(total) \(unit)") }
  }

  func end() {
    if isShown { Self.write("\r\u{1B}[K") }
  }

  fileprivate static func write(_ text: String) {
    let bytes = Array(text.utf8)
    // Progress output is only informative, so a failed write is ignored.
    _ = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
