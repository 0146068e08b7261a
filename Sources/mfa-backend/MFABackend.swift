internal import ArgumentParser

/// The MFA backend, for operators.
@main
struct MFABackend: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mfa-backend",
    abstract: "Devices, challenges, codes and trust behind the gate.",
    discussion: """
      Example: a backend for trying things, behind a gate whose keys are in gate.jwks

        mfa-backend run --ephemeral --sms-sink log --gate-jwks gate.jwks --gate-issuer https://localhost:6200 \
      --audience mfa
      """,
    version: "0.1.0",
    subcommands: [RunCommand.self, AdminCommand.self, AuditCommand.self, KeysCommand.self])
}
