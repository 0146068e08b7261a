internal import ArgumentParser
internal import Glibc

/// Lines for people and for the next program.
enum BackendConsole {
  /// Writes to standard error. A failure cannot be reported.
  static func error(_ text: String) { _ = write(text + "\n", to: 2) }

  /// On standard output.
  ///
  /// - Throws: what ends the command if it did not get there, silently if the reader has gone.
  static func print(_ text: String) throws {
    guard let fault = write(text + "\n", to: 1) else { return }
    if fault == EPIPE { throw ExitCode(CommandFault.Status.noOutput.rawValue) }
    throw CommandFault(.noOutput, "standard output: \(String(cString: strerror(fault)))")
  }

  /// The error number; `nil` once all is written.
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
