internal import ArgumentParser
internal import ByteCoding
internal import CommandSupport
internal import Glibc
internal import MFADomain

/// Output for people and for other programs.
enum BackendConsole {
  /// Prints lines to standard error, in colors if a terminal shows them, and with U+FFFD for each character that could
  /// steer a terminal. Ignores write errors, because they cannot be reported.
  static func error(_ text: String) { StandardError.write(messages: TerminalText.printableLines(text)) }

  /// Returns a name that a client chose for a line of output: unchanged if it cannot be taken for anything else,
  /// otherwise in quotation marks, with `\u{…}` for each character that a terminal does not show.
  static func quoting(_ name: String) -> String {
    let signs = "0123456789-._@+'".unicodeScalars
    let isPlain = name.unicodeScalars.allSatisfy {
      $0.isVisible && ($0.properties.isAlphabetic || signs.contains($0))
    }
    if isPlain, !name.isEmpty { return name }
    let shown = name.unicodeScalars.map { scalar in
      switch scalar {
      case "\"", "\\": "\\\(scalar)"
      case _ where !scalar.isVisible || (scalar.properties.isWhitespace && scalar != " "):
        "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: String(scalar)
      }
    }
    return "\"\(shown.joined())\""
  }

  /// Prints a line to standard output.
  ///
  /// - Throws: `CommandError` if the line could not be written; `ExitCode` without a message if the reader closed the
  ///   pipe.
  static func print(_ text: String) throws {
    guard let fault = write(text + "\n", to: 1) else { return }
    if fault == EPIPE { throw ExitCode(CommandError.Status.noOutput.rawValue) }
    throw CommandError(.noOutput, "standard output: \(String(cString: strerror(fault)))")
  }

  /// Prints whole lines to standard output.
  ///
  /// - Throws: as `print`.
  static func write(_ text: String) throws { try print(text.hasSuffix("\n") ? String(text.dropLast()) : text) }

  /// Writes `text` and returns the error number; `nil` once everything is written.
  private static func write(_ text: String, to descriptor: Int32) -> Int32? {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { return errno }
      rest = rest.dropFirst(max(0, count))
    }
    return nil
  }
}
