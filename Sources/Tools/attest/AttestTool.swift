public import ArgumentParser
internal import Commands
internal import TransportEngine

/// The command `attest`: a simulated device on the command line.
public struct AttestTool: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "attest",
    abstract: "A simulated iOS or Android device: registers keys with a gate and opens authenticated WebSockets.",
    discussion: """
      Example:
        sallyport dev --upstream ws://127.0.0.1:8080         # prints its folder
        attest connect wss://localhost:6200/ --authority DIR    # opens a pipe

      The device is made and registered if need be; with `--platform android` it is an Android device. SALLYPORT_AUTHORITY can name the authority, too. Only gates that trust this authority accept a simulated device.
      """,
    version: ProjectVersion.line(of: "attest", cryptography: "OpenSSL \(OpenSSLProcess.version)"),
    groupedSubcommands: [
      CommandGroup(
        name: "Gate",
        subcommands: [
          DeviceCommand.self, RegisterCommand.self, HeadersCommand.self, TokenCommand.self, ConnectCommand.self,
          EchoCommand.self,
        ]),
      CommandGroup(
        name: "Primitive", subcommands: [AttestationCommand.self, AssertionCommand.self, InspectCommand.self]),
      CommandGroup(
        name: "Second factor",
        subcommands: [
          EnrollCommand.self, SignInCommand.self, VerifyCommand.self, FactorCommand.self, TrustCommand.self,
          UpgradeCommand.self, DowngradeCommand.self,
          UnenrollCommand.self, PhoneCommand.self, LabCommand.self,
        ]),
      CommandGroup(name: "Test", subcommands: [LoadCommand.self, ProbeCommand.self, DevAppleCommand.self]),
    ])

  public init() {}
}
