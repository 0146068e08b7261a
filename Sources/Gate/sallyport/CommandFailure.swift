internal import ArgumentParser
internal import ByteCoding
internal import Glibc
internal import Preflight

/// Why a command ends before its time: what is wrong, and what to do about it.
struct CommandFailure: Error {
  /// sysexits(3).
  enum Status: Int32 {
    /// A check found problems.
    case problemsFound = 1
    case usage = 64
    case badData = 65
    case noInput = 66
    case unavailable = 69
    case software = 70
    case cannotBind = 71
    case cannotCreate = 73
    case cannotWrite = 74
    /// The gate did not let the command in.
    case refused = 77
    case configuration = 78
  }

  let status: Status
  /// Whole lines, each with its `error: ` or `hint: `.
  let lines: String

  init(_ status: Status, lines: String) {
    self.status = status
    self.lines = lines
  }

  init(_ status: Status, error: String, hint: String) {
    self.init(status, lines: "error: \(error)\nhint: \(hint)")
  }

  /// What keeps a gate from starting.
  init(_ fault: StartFault) { self.init(.configuration, error: fault.description, hint: fault.hint) }

  /// The first line, without `error: `.
  var reason: String { line(after: "error: ") ?? lines }
  /// The lines without `error: `: a reason to tell as a part of something else. Hints keep their mark.
  var plainLines: String {
    lines.split(whereSeparator: \.isNewline).map { $0.hasPrefix("error: ") ? $0.dropFirst("error: ".count) : $0 }
      .joined(separator: "\n")
  }

  /// The first hint.
  var hint: String? { line(after: "hint: ") }

  private func line(after mark: String) -> String? {
    let line = lines.split(whereSeparator: \.isNewline).first { $0.hasPrefix(mark) }
    return line.map { String($0.dropFirst(mark.count)) }
  }

  /// Says it on standard error, and gives what the command line parser is to end with.
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

  /// Writes whole lines to standard output. Where they cannot be written, the process ends and says so: a result that
  /// is lost is no success. Who reads no further has what they want.
  static func write(_ text: String) {
    let code = write(text, to: 1)
    guard code != 0, code != EPIPE else { return }
    error("error: standard output: \(String(cString: strerror(code)))\nhint: name a place that has room")
    exit(CommandFailure.Status.cannotWrite.rawValue)
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
