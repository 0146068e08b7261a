internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import OIDCClient

struct UserinfoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "userinfo",
    abstract: "Print what the provider says about the user.",
    discussion: """
      One JSON object. Claims of another person than the one who signed in are refused, and so is a signed answer whose \
      signature is not that of the provider. Example:
        bearer userinfo work
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  func run() async throws {
    let access = try options.access()
    let account = try access.account(provider, chosen)
    let session = try access.session(account)
    let client = session.client
    let claims: UserClaims
    do {
      let tokens = try await session.tokens()
      do throws(OIDCError) { claims = try await client.userClaims(of: tokens) } catch {
        guard case .status(401, _, _) = error else { throw error }
        // The provider may have withdrawn the token before its time.
        claims = try await client.userClaims(of: try await session.tokens(rejecting: tokens.tokens.accessToken))
      }
    } catch let error as OIDCError {
      throw Failure(error, at: client.provider, for: account)
    }
    StandardOutput.write(TerminalText.escaped(json: claims.json) + "\n")
  }
}
