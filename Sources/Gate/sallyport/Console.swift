internal import ArgumentParser
internal import ByteCoding
internal import CommandSupport
internal import GateRuntime

extension SallyportError {
  /// Writes the error to standard error, and returns what the command line parser is to exit with.
  func told() -> ExitCode {
    Console.error(lines)
    return ExitCode(status.rawValue)
  }
}

/// Lines for people.
enum Console {
  /// Writes lines to standard error, with U+FFFD for each character that could steer a terminal, and in color where the
  /// terminal shows it.
  static func error(_ text: String) { StandardError.write(messages: TerminalText.printableLines(text)) }
  static func print(_ text: String) { write(text + "\n") }

  /// Writes whole lines to standard output. If they cannot be written, prints an error and exits: a lost result is not
  /// a success. A reader that closed the pipe has what it wants.
  static func write(_ text: String) {
    StandardOutput.write(text)
  }
}
