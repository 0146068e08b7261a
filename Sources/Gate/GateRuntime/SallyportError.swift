package import Preflight

/// An operation of the gate or of a command that failed: what is wrong, what to do about it, and the exit status.
package struct SallyportError: Error {
  /// The exit status of the program, after sysexits(3).
  package enum Status: Int32 {
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
    /// The gate did not admit the command.
    case refused = 77
    case configuration = 78
  }

  package let status: Status
  /// Whole lines, each with its `error: ` or `hint: `.
  package let lines: String
  /// The part of the error that says why, to be part of another message.
  package let cause: String?

  package init(_ status: Status, lines: String, cause: String? = nil) {
    self.status = status
    self.lines = lines
    self.cause = cause
  }

  package init(_ status: Status, error: String, hint: String, cause: String? = nil) {
    self.init(status, lines: "error: \(error)\nhint: \(hint)", cause: cause)
  }

  /// A fault that keeps a gate from starting.
  package init(_ fault: StartError) { self.init(.configuration, error: fault.description, hint: fault.hint) }

  /// The first line, without `error: `.
  package var reason: String { line(after: "error: ") ?? lines }

  /// The lines without `error: `, to be part of another message. Hints keep their mark.
  package var plainLines: String {
    lines.split(whereSeparator: \.isNewline).map { $0.hasPrefix("error: ") ? $0.dropFirst("error: ".count) : $0 }
      .joined(separator: "\n")
  }

  /// The first hint.
  package var hint: String? { line(after: "hint: ") }

  private func line(after mark: String) -> String? {
    let line = lines.split(whereSeparator: \.isNewline).first { $0.hasPrefix(mark) }
    return line.map { String($0.dropFirst(mark.count)) }
  }
}
