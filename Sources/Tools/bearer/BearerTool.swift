public import ArgumentParser
internal import Commands

/// The command `bearer`: signs in with an identity provider, and keeps the tokens.
public struct BearerTool: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "bearer",
    abstract: "Sign in with an identity provider, and have a valid token at any time.",
    discussion: """
      Example:
        bearer login work                                # opens the browser
        curl --oauth2-bearer "$(bearer token work)" https://api.example.com/

      Providers are in $XDG_CONFIG_HOME/sallyport/bearer.yaml. Tokens are kept encrypted, and renewed when needed.
      HTTPS_PROXY, ALL_PROXY and NO_PROXY are read as curl reads them.
      """,
    version: ProjectVersion.line(of: "bearer", cryptography: "BoringSSL of swift-crypto"),
    subcommands: [
      LoginCommand.self, TokenCommand.self, ExchangeCommand.self, ExecCommand.self, GitCredentialCommand.self,
      StatusCommand.self,
      UserinfoCommand.self, LogoutCommand.self, ProvidersCommand.self, ExplainCommand.self,
    ])

  public init() {}
}
