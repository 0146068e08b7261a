public import ArgumentParser

/// The command `attest`: a simulated device on the command line.
public struct AttestTool: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "attest",
    abstract: "A simulated iOS device: registers keys with a gate and opens authenticated WebSockets.",
    discussion: """
      Example:
        sallyport dev --upstream ws://127.0.0.1:8080            # prints the folder of its authority
        attest connect wss://localhost:6200/ --authority DIR    # makes and registers a device, opens a pipe

      SALLYPORT_AUTHORITY can name the authority, too. Only gates that trust this authority accept a simulated device.
      """,
    version: "0.1.0",
    subcommands: [
      DeviceCommand.self, RegisterCommand.self, HeadersCommand.self, ConnectCommand.self, EchoCommand.self,
      EnrollCommand.self, SignInCommand.self, VerifyCommand.self, UpgradeCommand.self, DowngradeCommand.self,
      UnenrollCommand.self, PhoneCommand.self, LabCommand.self, LoadCommand.self, ProbeCommand.self,
    ])

  public init() {}

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
      report(failure)
      return failure.status.rawValue
    } catch {
      return report(error)
    }
  }

  /// Prints a message of the parser: help and version to standard output, errors to standard error.
  private static func report(_ error: any Error) -> Int32 {
    guard exitCode(for: error) != .success else {
      StandardOutput.write(fullMessage(for: error) + "\n")
      return 0
    }
    report(
      Failure(
        .usage, message(for: error), hint: "`attest --help` lists the commands, `attest COMMAND --help` its options"))
    return Status.usage.rawValue
  }

  private static func report(_ failure: Failure) {
    StandardError.write("error: \(failure.message)\n")
    if let hint = failure.hint { StandardError.write("hint: \(hint)\n") }
  }
}
