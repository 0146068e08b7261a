internal import ArgumentParser
internal import Commands
internal import Glibc
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
    version: ProjectVersion.line(of: "sallyport", cryptography: "OpenSSL \(OpenSSLProcess.version)"),
    subcommands: [
      RunCommand.self, DevCommand.self, CheckCommand.self, StatusCommand.self, ReloadCommand.self, UpgradeCommand.self,
      DrainCommand.self, RefusalsCommand.self, ConsoleCommand.self, KeysCommand.self, SessionsCommand.self,
      UpstreamsCommand.self, StoreCommand.self,
      CACommand.self, VerifyCommand.self,
    ])

  static func main() async {
    StandardDescriptors.occupy()
    ProcessSignals.keepEndedChildren()
    OpenSSLProcess.prepare()
    Glibc.exit(await execute())
  }
}
