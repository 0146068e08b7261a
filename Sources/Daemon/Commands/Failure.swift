internal import ByteCoding

/// The exit codes of a command, as `sysexits.h` has them.
public enum Status: Int32, Sendable {
  /// The command worked and found problems, or what it was to change is not there.
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
  /// A file cannot be created.
  case cannotCreate = 73
  /// A result cannot be written.
  case cannotWrite = 74
  /// The same may work later.
  case retryLater = 75
  /// The other side breaks its protocol.
  case protocolFault = 76
  /// The other side refuses.
  case refused = 77
  /// The configuration has a fault.
  case configuration = 78
}

/// The reason why a command failed, and what the user can do about it.
public struct Failure: Error, Sendable, Hashable {
  /// The exit code.
  public let status: Status
  /// What the user reads, in this order: errors and hints, at least one error.
  public let messages: [Message]
  /// The part of the error that says why, for another message that names the place itself.
  public let cause: String?

  /// Creates a failure with one error.
  ///
  /// - Parameters:
  ///   - message: One line without a full stop.
  ///   - hint: What the user can do.
  public init(_ status: Status, _ message: String, hint: String? = nil, cause: String? = nil) {
    self.init(status, [.error(message)] + [hint.map(Message.hint)].compactMap(\.self), cause: cause)
  }

  /// Creates a failure with `messages`, at least one of them an error.
  public init(_ status: Status, _ messages: [Message], cause: String? = nil) {
    self.status = status
    self.messages = messages.map(\.printable)
    self.cause = cause
  }

  /// The first error.
  public var message: String { errors.first ?? "" }

  /// The errors, without their marks.
  public var errors: [String] {
    messages.compactMap { if case .error(let text) = $0 { text } else { nil } }
  }

  /// The hints, without their marks.
  public var hints: [String] {
    messages.compactMap { if case .hint(let text) = $0 { text } else { nil } }
  }

  /// The first hint.
  public var hint: String? { hints.first }

  /// Everything in one text for a log or an operator elsewhere: the errors without a mark, the hints with theirs.
  public func report(separator: String) -> String {
    messages.map { if case .error(let text) = $0 { text } else { $0.line } }.joined(separator: separator)
  }
}
