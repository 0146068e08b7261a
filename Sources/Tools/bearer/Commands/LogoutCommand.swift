internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient

struct LogoutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logout",
    abstract: "Revoke the tokens of an account and delete them.",
    discussion: """
      The tokens are deleted here even if the provider cannot be reached. The session in the browser goes on until its \
      page is visited, which this command prints where the provider has one. Example:
        bearer logout work
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  private struct Output: Encodable {
    let account: String
    let revoked: Bool
    let reason: String?
    let end_session_url: String?
  }

  func run() async throws {
    let access = try options.access()
    if let name = provider, access.settings.provider(name) == nil,
      try forget(Account.storedName(chosen.account, at: name), access.store)
    {
      return
    }
    let account = try access.account(provider, chosen)
    let session: IssuerSession
    do throws(Failure) { session = try access.session(account) } catch {
      // Tokens that cannot be read can still be deleted.
      try? access.store.delete(account.name)
      throw error
    }
    let fault: OIDCError?
    do throws(SessionError) { fault = try await session.session.logOut() } catch { throw session.failure(error) }
    let page = try? await session.client.endSessionURL()
    report(account.name, fault, page)
  }

  /// Deletes the tokens of an account whose entry has gone from the configuration. Without the entry, the provider that
  /// could revoke them is not known. Returns `false` if there is no such account.
  private func forget(_ name: String, _ store: any TokenStore) throws(Failure) -> Bool {
    do throws(TokenStoreError) {
      guard try store.account(name) != nil else { return false }
      try store.delete(name)
    } catch {
      try? store.delete(name)
      throw Failure(error)
    }
    report(name, .notOffered("revocation of tokens whose entry has gone from the configuration"), nil)
    return true
  }

  private func report(_ account: String, _ fault: OIDCError?, _ page: URL?) {
    if options.json {
      JSONOutput.print(
        Output(
          account: account, revoked: fault == nil, reason: fault?.code, end_session_url: page?.absoluteString))
    } else {
      if let fault {
        // An answer of a provider may be in it.
        StandardError.write(TerminalText.printable("warning: not revoked at the provider: \(fault)") + "\n")
      }
      if let page { StandardOutput.write("the session in the browser ends at \(page.absoluteString)\n") }
    }
  }
}
