internal import Commands
internal import GateRuntime
internal import ProcessSignals

/// Asks for a password on the terminal without echoing it.
enum PasswordPrompt {
  /// Returns the password after it was typed twice.
  static func ask(_ what: String) throws(Failure) -> String {
    guard let terminal = Terminal() else {
      throw Failure(
        .usage, "no terminal to ask for the password",
        hint: "use --password-file FILE; its first line is the password")
    }
    TemporaryFileRegistry.endWithSignals()
    guard let first = terminal.ask("\(what): ", isSecret: true), let second = terminal.ask("Again: ", isSecret: true)
    else {
      throw Failure(.usage, "no password was typed", hint: "try again, or use --password-file FILE")
    }
    guard first == second else {
      throw Failure(.usage, "the two passwords differ", hint: "try again, or use --password-file FILE")
    }
    return first
  }
}
