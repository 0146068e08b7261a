internal import ArgumentParser
internal import Glibc
internal import ProcessSignals

/// The MFA backend, for operators.
@main
struct MFABackend: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mfa-backend",
    abstract: "Devices, challenges, codes and trust behind the gate.",
    discussion: """
      Example: a backend for trying things, behind `sallyport dev --forward all`, which prints the folder DIR

        mfa-backend run --ephemeral --sms-sink log \
      --gate-jwks https://localhost:6200/.well-known/sallyport/jwks.json --gate-ca DIR/tls-ca.pem \
      --gate-issuer sallyport --audience sallyport-upstream
      """,
    version: "0.1.0",
    subcommands: [RunCommand.self, AdminCommand.self, AuditCommand.self, KeysCommand.self])

  static func main() async {
    StandardDescriptors.occupy()
    // A reader that has gone is an error of the write, which ends a command by its status and a server not at all.
    signal(SIGPIPE, SIG_IGN)
    await main(nil)
  }
}
