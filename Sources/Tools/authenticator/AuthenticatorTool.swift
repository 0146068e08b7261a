public import ArgumentParser
internal import Commands

/// The command `authenticator`: one-time codes in the terminal.
public struct AuthenticatorTool: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "authenticator",
    abstract: "One-time codes in the terminal, in a vault that loses nothing.",
    discussion: """
      Example:
        authenticator import aegis-backup.json   # or: scan FILE, add NAME
        authenticator                            # the list: type to search
        authenticator code github                # one code, for scripts

      The vault is $XDG_DATA_HOME/sallyport/authenticator/vault, encrypted under your passphrase. No command uses the \
      network.
      """,
    version: ProjectVersion.line(of: "authenticator", cryptography: "BoringSSL of swift-crypto"),
    subcommands: [
      ListCommand.self, CodeCommand.self, AddCommand.self, ScanCommand.self, ImportCommand.self,
      ExportCommand.self, QRCommand.self, EditCommand.self,
      RemoveCommand.self, RestoreCommand.self,
      SyncCommand.self, UnlockCommand.self,
      LockCommand.self, PassphraseCommand.self, CheckCommand.self, ReadPictureCommand.self,
      ClearClipboardCommand.self,
    ],
    defaultSubcommand: ListCommand.self)

  public init() {}
}
