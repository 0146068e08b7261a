internal import ByteCoding

/// The exit codes of the command, as `sysexits.h` has them.
enum Status: Int32, Sendable {
  /// What was tried worked, and showed that something is wrong.
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

/// Why a command ends without having done its work.
struct Failure: Error, Sendable, Hashable {
  let status: Status
  /// One line, without a full stop. Servers and files have their say in it: nothing of it can steer a terminal.
  let message: String
  /// What a person can do about it.
  let hint: String?

  init(_ status: Status, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = TerminalText.printable(message.split(whereSeparator: \.isNewline).joined(separator: " "))
    self.hint = hint.map(TerminalText.printableLines)
  }
}
