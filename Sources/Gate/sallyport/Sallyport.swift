internal import ArgumentParser
internal import GateRuntime
internal import ProcessSignals
internal import TransportEngine

/// The gate, for operators.
@main
struct Sallyport: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sallyport",
    abstract: "A TLS WebSocket gate that lets only genuine instances of an app through.",
    discussion: """
      Example: a gate for trying things, in front of a service on port 8080

        sallyport dev --upstream ws://127.0.0.1:8080
      """,
    version: Version.text,
    subcommands: [
      RunCommand.self, DevCommand.self, CheckCommand.self, StatusCommand.self, ReloadCommand.self, UpgradeCommand.self,
      DrainCommand.self,
      KeysCommand.self,
      SessionsCommand.self, StoreCommand.self,
      CACommand.self, VerifyCommand.self,
    ])

  static func main() async {
    StandardDescriptors.occupy()
    OpenSSLProcess.prepare()
    do {
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      end(with: error)
    }
  }

  /// Ends as the parser would, but says what is wrong with a command line as everything else does that goes wrong.
  private static func end(with error: any Error) -> Never {
    // A command that failed has said so itself, and throws a bare status, which may be that of a wrong command line.
    guard !(error is ExitCode), exitCode(for: error) == .validationFailure else { exit(withError: error) }
    let help = fullMessage(for: error).split(separator: "\n").last.map { $0.drop { $0 == " " } } ?? ""
    Console.error("error: \(message(for: error))\nhint: \(help)")
    exit(withError: ExitCode.validationFailure)
  }
}
