public import ArgumentParser
internal import ByteCoding
internal import Glibc

extension ParsableCommand {
  /// Runs a command and reports errors on standard error: one line `error:`, and mostly one line `hint:`.
  ///
  /// A command that has reported its errors itself throws an `ExitCode`.
  ///
  /// From now on the process ignores SIGPIPE: a reader that has gone, of standard output or of a program that a command
  /// starts, must not end it in the middle of its work. `StandardOutput` reports such a reader to its caller.
  ///
  /// - Parameter arguments: The arguments without the program's name; `nil` for those of the process.
  /// - Returns: The exit code, from sysexits.
  public static func execute(_ arguments: [String]? = nil) async -> Int32 {
    signal(SIGPIPE, SIG_IGN)
    do {
      var command = try parseAsRoot(arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      return 0
    } catch let failure as Failure {
      return report(failure)
    } catch let code as ExitCode {
      return code.rawValue
    } catch {
      guard exitCode(for: error) != .success else {
        let columns = TerminalStyle.columns
        StandardOutput.write(HelpText.fitted(fullMessage(for: error, columns: columns), columns: columns) + "\n")
        return 0
      }
      return report(usageFailure(error, of: arguments ?? Array(CommandLine.arguments.dropFirst())))
    }
  }

  /// Describes a command line that cannot be parsed.
  private static func usageFailure(_ error: any Error, of arguments: [String]) -> Failure {
    let message = Self.message(for: error)
    // The parser knows no more of an unknown command than that its word is not expected.
    if message.lowercased().contains("unexpected argument"),
      let unknown = UnknownCommand(in: arguments, of: Self.self), message.contains("'\(unknown.word)'")
    {
      let list = "`\(unknown.path) --help` lists the commands"
      return Failure(
        .usage, "unknown command \(unknown.word)",
        hint: unknown.meant.map { "did you mean `\(unknown.path) \($0)`? \(list)" } ?? list)
    }
    let name = configuration.commandName ?? "command"
    return Failure(
      .usage, message, hint: "`\(name) --help` lists the commands, `\(name) COMMAND --help` its options")
  }

  private static func report(_ failure: Failure) -> Int32 {
    let hint = failure.hint.map { "\nhint: \($0)" } ?? ""
    StandardError.write(messages: "error: \(failure.message)" + hint)
    return failure.status.rawValue
  }
}
