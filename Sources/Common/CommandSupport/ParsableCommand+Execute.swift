public import ArgumentParser

extension ParsableCommand {
  /// Runs a command and reports errors on standard error: one line `error:`, and mostly one line `hint:`.
  ///
  /// - Parameter arguments: The arguments without the program's name; `nil` for those of the process.
  /// - Returns: The exit code, from sysexits.
  public static func execute(_ arguments: [String]? = nil) async -> Int32 {
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
    } catch {
      guard exitCode(for: error) != .success else {
        StandardOutput.write(fullMessage(for: error) + "\n")
        return 0
      }
      let name = configuration.commandName ?? "command"
      return report(
        Failure(
          .usage, message(for: error),
          hint: "`\(name) --help` lists the commands, `\(name) COMMAND --help` its options"))
    }
  }

  private static func report(_ failure: Failure) -> Int32 {
    StandardError.write("error: \(failure.message)\n")
    if let hint = failure.hint { StandardError.write("hint: \(hint)\n") }
    return failure.status.rawValue
  }
}
