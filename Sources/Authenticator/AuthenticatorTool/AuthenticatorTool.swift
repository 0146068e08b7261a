public import ArgumentParser

/// The command `authenticator`: one-time codes in the terminal.
public struct AuthenticatorTool: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "authenticator",
    abstract: "One-time codes in the terminal, in a vault that loses nothing.",
    discussion: """
      Example:
        authenticator import aegis-backup.json      # or: authenticator scan picture.png, authenticator add GitHub:alice
        authenticator                               # the list: type to search, Enter copies
        authenticator code github                   # one code, for scripts

      The vault is $XDG_DATA_HOME/sallyport/authenticator/vault, encrypted under your passphrase. No command uses the
      network.
      """,
    version: "0.1.0",
    subcommands: [
      ListCommand.self, CodeCommand.self, AddCommand.self, ScanCommand.self, ImportCommand.self,
      ExportCommand.self, QRCommand.self, EditCommand.self,
      RemoveCommand.self, RestoreCommand.self,
      SyncCommand.self, UnlockCommand.self,
      LockCommand.self, PassphraseCommand.self, CheckCommand.self,
    ],
    defaultSubcommand: ListCommand.self)

  public init() {}
}
