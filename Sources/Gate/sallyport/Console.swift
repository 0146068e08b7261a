internal import ArgumentParser
internal import ByteCoding
internal import GateRuntime
internal import Glibc

extension SallyportError {
  /// Writes the error to standard error, and returns what the command line parser is to exit with.
  func told() -> ExitCode {
    Console.error(lines)
    return ExitCode(status.rawValue)
  }
}

/// Lines for people.
enum Console {
  /// Writes lines to standard error, with U+FFFD for each character that could steer a terminal.
  static func error(_ text: String) { _ = write(TerminalText.printableLines(text) + "\n", to: 2) }
  static func print(_ text: String) { write(text + "\n") }

  /// Writes whole lines to standard output. If they cannot be written, prints an error and exits: a lost result is not
  /// a success. A reader that closed the pipe has what it wants.
  static func write(_ text: String) {
    let code = write(text, to: 1)
    guard code != 0, code != EPIPE else { return }
    error("error: standard output: \(String(cString: strerror(code)))\nhint: name a place that has room")
    exit(SallyportError.Status.cannotWrite.rawValue)
  }

  /// 0, or the number of the error.
  private static func write(_ text: String, to descriptor: Int32) -> Int32 {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 && errno != EINTR { return errno }
      rest = rest.dropFirst(max(0, written))
    }
    return 0
  }
}
