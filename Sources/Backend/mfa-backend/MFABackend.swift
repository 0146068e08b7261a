internal import ArgumentParser
internal import Commands
internal import Glibc
internal import ProcessSignals

/// The MFA backend's command.
@main
struct MFABackend: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mfa-backend",
    abstract: "The MFA service behind the gate: devices, challenges, codes and trust.",
    discussion: """
      Example: a backend for testing, behind `sallyport dev --forward all`, which prints the folder DIR

        mfa-backend run --ephemeral --sms-sink log \\
          --gate-jwks https://localhost:6200/.well-known/sallyport/jwks.json \\
          --gate-ca DIR/tls-ca.pem --gate-issuer sallyport \\
          --audience sallyport-upstream
      """,
    version: ProjectVersion.line(of: "mfa-backend", cryptography: "BoringSSL of swift-crypto"),
    subcommands: [
      RunCommand.self, CheckCommand.self, StatusCommand.self, ReloadCommand.self, DrainCommand.self,
      ConsoleCommand.self, StoreCommand.self, AdminCommand.self, AuditCommand.self, KeysCommand.self,
    ])

  static func main() async {
    StandardDescriptors.occupy()
    ProcessSignals.keepEndedChildren()
    Glibc.exit(await execute(describing: Failure.init(of:)))
  }
}
