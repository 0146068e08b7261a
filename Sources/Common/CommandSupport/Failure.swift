internal import ByteCoding

/// The exit codes of a command, as `sysexits.h` has them.
public enum Status: Int32, Sendable {
  /// The command worked and found problems.
  case problems = 1
  /// The command line is not possible.
  case usage = 64
  /// What was read is malformed.
  case badData = 65
  /// What is to be read is not there.
  case noInput = 66
  /// Another service is not there.
  case unavailable = 69
  /// A fault of the program.
  case internalError = 70
  /// An address is in use.
  case cannotBind = 71
  /// A file cannot be written.
  case cannotCreate = 73
  /// The same may work later.
  case retryLater = 75
  /// The other side breaks its protocol.
  case protocolFault = 76
  /// The other side refuses.
  case refused = 77
  /// The configuration has a fault.
  case configuration = 78
}

/// The reason why a command failed.
public struct Failure: Error, Sendable, Hashable {
  /// The exit code.
  public let status: Status
  /// One line without a full stop. It may contain text from servers and files, so control characters are escaped.
  public let message: String
  /// What the user can do.
  public let hint: String?

  /// Creates a failure. Characters that steer a terminal are replaced.
  public init(_ status: Status, _ message: String, hint: String? = nil) {
    self.status = status
    self.message = TerminalText.printable(message.split(whereSeparator: \.isNewline).joined(separator: " "))
    self.hint = hint.map(TerminalText.printableLines)
  }
}
