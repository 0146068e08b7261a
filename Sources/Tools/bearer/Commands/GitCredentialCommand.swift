internal import ArgumentParser
internal import Commands
internal import Foundation
internal import OIDCClient

struct GitCredentialCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "git-credential",
    abstract: "Give Git the token of a provider, for its hosts alone.",
    discussion: """
      Git starts it. git_hosts of an entry names the hosts; any other gets nothing, and Git asks its next helper. A \
      token that a host refuses is renewed once. Example:
        git config --global credential.https://git.example.com.helper \\
          '!bearer git-credential'
      """)

  /// What Git asks for.
  enum Action: String, ExpressibleByArgument, CaseIterable {
    /// A credential.
    case get
    /// Keep one that was accepted.
    case store
    /// Forget one that was refused.
    case erase
  }

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "get, store or erase, which Git adds.")
  var action: String

  func run() async throws {
    // Git may add further actions one day, which a helper is to ignore.
    guard let action = Action(rawValue: action), action != .store else { return }
    let bytes = try InputFile.read("-", largest: GitCredential.largest) ?? []
    guard let request = GitCredential(bytes) else {
      throw Failure(.badData, "this is no request of Git", hint: "let Git start it: `bearer git-credential --help`")
    }
    let access = try options.access()
    guard let provider = access.settings.providers.first(where: { access.settings.use(of: $0.id).has(request.host) })
    else { return }
    guard request.isConfidential else {
      throw Failure(
        .usage, "\(provider.id): a token is not sent to \(request.host) by \(request.scheme)", hint: "use https")
    }
    let account = access.account(provider, chosen)
    switch action {
    case .get: try await answer(request, account, access)
    case .erase: try await replace(request, account, access)
    case .store: break
    }
  }

  private func answer(_ request: GitCredential, _ account: Account, _ access: AccountAccess) async throws {
    let tokens = try await access.session(account).tokens()
    guard !tokens.isBound else { throw Failure.bound(account) }
    let username = request.username ?? access.settings.use(of: account.provider.id).gitUsername
    StandardOutput.write(
      GitCredential.answer(username: username, token: tokens.tokens.accessToken, expiry: tokens.expiryInSeconds))
  }

  /// Renews the token if it is still the one that the host refused.
  private func replace(_ request: GitCredential, _ account: Account, _ access: AccountAccess) async throws {
    guard let rejected = request.password,
      try access.stored(account)?.tokens.accessToken.utf8.elementsEqual(rejected.utf8) == true
    else { return }
    _ = try await access.session(account).tokens(rejecting: rejected)
  }
}

extension ProviderUse {
  /// Whether Git gets the token for `host`, as Git writes it: with a port that its address has.
  fileprivate func has(_ host: String) -> Bool {
    gitHosts.contains { $0.utf8.elementsEqual(host.utf8) || "\($0):443".utf8.elementsEqual(host.utf8) }
  }
}
