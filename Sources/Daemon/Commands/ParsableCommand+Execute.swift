public import ArgumentParser
internal import ByteCoding
internal import Glibc

extension ParsableCommand {
  /// Runs a command and reports its failure on standard error.
  ///
  /// A command fails by throwing a `Failure`. One that has said what is wrong itself throws an `ExitCode`.
  ///
  /// From now on the process ignores SIGPIPE: a reader that has gone, of standard output or of a program that a command
  /// starts, must not end it in the middle of its work. `StandardOutput` reports such a reader to its caller.
  ///
  /// - Parameters:
  ///   - arguments: The arguments without the program's name; `nil` for those of the process.
  ///   - describing: What an error of the program's own means to its user; `nil` if it is a fault of the program.
  /// - Returns: The exit code, from sysexits.
  public static func execute(
    _ arguments: [String]? = nil, describing describe: (any Error) -> Failure? = { _ in nil }
  ) async -> Int32 {
    signal(SIGPIPE, SIG_IGN)
    do {
      var command = try parseAsRoot(arguments)
      do {
        if var command = command as? any AsyncParsableCommand {
          try await command.run()
        } else {
          try command.run()
        }
        return 0
      } catch let failure as Failure {
        throw failure
      } catch let error where isOfParser(error) {
        throw error
      } catch {
        throw describe(error) ?? Failure(.internalError, "unexpected: \(error)", hint: "report this as a bug")
      }
    } catch let failure as Failure {
      return report(failure)
    } catch let code as ExitCode {
      return code.rawValue
    } catch {
      guard exitCode(for: error) != .success else {
        let columns = TerminalStyle.columns
        Console.print(HelpText.fitted(fullMessage(for: error, columns: columns), columns: columns))
        return 0
      }
      return report(usageFailure(error, of: arguments ?? Array(CommandLine.arguments.dropFirst())))
    }
  }

  /// Whether a command throws `error` for the parser to handle it: a fault of the command line, or a request for help.
  private static func isOfParser(_ error: any Error) -> Bool {
    // To the parser, an error that it does not know is a failure of the program.
    error is ExitCode || exitCode(for: error) != .failure
  }

  /// Describes a command line that cannot be parsed.
  private static func usageFailure(_ error: any Error, of arguments: [String]) -> Failure {
    let message = Self.message(for: error)
    if let unknown = UnknownCommand(in: arguments, of: Self.self), isAbout(unknown, message) {
      let list = "`\(unknown.path) --help` lists the commands"
      return Failure(
        .usage, "unknown command \(unknown.word)",
        hint: unknown.meant.map { "did you mean `\(unknown.path) \($0)`? \(list)" } ?? list)
    }
    let name = configuration.commandName ?? "command"
    return Failure(
      .usage, message, hint: "`\(name) --help` lists the commands, `\(name) COMMAND --help` its options")
  }

  /// Whether `message` of the parser results from an unknown command. The parser knows no more of such a command than
  /// that its word is not expected. If an option follows the word, it names that option alone, which it does not know.
  private static func isAbout(_ unknown: UnknownCommand, _ message: String) -> Bool {
    if message.lowercased().contains("unexpected argument") { return message.contains("'\(unknown.word)'") }
    return message.hasPrefix("Unknown option") && !unknown.mayBeArgument
  }

  private static func report(_ failure: Failure) -> Int32 {
    Console.tell(failure.messages)
    return failure.status.rawValue
  }
}
