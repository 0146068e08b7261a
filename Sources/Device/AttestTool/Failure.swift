internal import ByteCoding

/// The exit codes of the command, as `sysexits.h` has them.
enum Status: Int32, Sendable {
  /// The command worked and found problems.
  case problems = 1
  case usage = 64
  case badData = 65
  case noInput = 66
  case unavailable = 69
  case internalError = 70
  case cannotBind = 71
  case cannotCreate = 73
  case retryLater = 75
  case protocolFault = 76
  case refused = 77
}

/// The reason why a command failed.
struct Failure: Error, Sendable, Hashable {
  let status: Status
  /// One line without a full stop. It may contain text from servers and files, so control characters are escaped.
  let message: String
  /// What the user can do.
  let hint: String?

  init(_ status: Status, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = TerminalText.printable(message.split(whereSeparator: \.isNewline).joined(separator: " "))
    self.hint = hint.map(TerminalText.printableLines)
  }
}
