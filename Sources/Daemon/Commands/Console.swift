internal import ByteCoding
internal import Glibc

/// What a command says: its results on standard output, everything else on standard error.
public enum Console {
  /// Prints a line to standard output. If it cannot be written, the process reports it and exits with 74: a lost result
  /// is not a success. A reader that has gone has what it wants.
  public static func print(_ line: String) { StandardOutput.write(line + "\n") }

  /// Prints whole lines to standard output, as `print(_:)` does.
  public static func write(_ lines: String) { StandardOutput.write(lines) }

  /// Writes messages to standard error, in colors if a terminal shows them. A fault is ignored: it cannot be reported.
  public static func tell(_ messages: [Message]) {
    guard !messages.isEmpty else { return }
    let inColor = TerminalStyle.colorsMessages
    StandardError.write(messages.map { $0.printable.shown(inColor: inColor) + "\n" }.joined())
  }

  /// Writes a message to standard error, as `tell(_:)` does.
  public static func tell(_ message: Message) { tell([message]) }

  /// Writes lines that are no message to standard error, with U+FFFD for each character that could steer a terminal.
  public static func note(_ lines: String) { StandardError.write(TerminalText.printableLines(lines) + "\n") }

  /// Asks on standard error; only the answers `y` and `yes` confirm.
  public static func confirms(_ question: String) -> Bool {
    StandardError.write("\(TerminalText.printable(question)) [y/N] ")
    let answer = readLine()?.lowercased()
    return answer == "y" || answer == "yes"
  }
}

/// The progress of long work, on one line of a terminal. Prints nothing elsewhere.
public struct Progress {
  private let unit: String

  /// Shows nothing yet.
  ///
  /// - Parameter unit: What is counted, such as `keys`.
  public init(of unit: String) { self.unit = unit }

  /// Replaces the line.
  public func show(_ count: Int, of total: Int) { write("\r\(count) of \(total) \(unit)") }

  /// Removes the line.
  public func end() { write("\r\u{1B}[K") }

  private func write(_ text: String) { if StandardError.isTerminal { StandardError.write(text) } }
}
