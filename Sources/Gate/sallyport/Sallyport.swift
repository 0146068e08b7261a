internal import ArgumentParser
internal import GateRuntime
internal import ProcessSignals
internal import TransportEngine

/// The gate's command line.
@main
struct Sallyport: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sallyport",
    abstract: "A TLS WebSocket gate that admits only genuine instances of an app.",
    discussion: """
      Example: a development gate in front of a service on port 8080

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

  /// Exits with the parser's status, and formats usage errors like all other errors.
  private static func end(with error: any Error) -> Never {
    // A failed command has printed its error and throws a bare status, which may equal the parser's own.
    guard !(error is ExitCode), exitCode(for: error) == .validationFailure else { exit(withError: error) }
    let help = fullMessage(for: error).split(separator: "\n").last.map { $0.drop { $0 == " " } } ?? ""
    Console.error("error: \(message(for: error))\nhint: \(help)")
    exit(withError: ExitCode.validationFailure)
  }
}
