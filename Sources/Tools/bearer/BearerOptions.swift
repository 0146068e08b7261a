internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import OIDCClient

/// The options of every command.
struct BearerOptions: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: ArgumentHelp(
      "The providers (default: $BEARER_CONFIG, $XDG_CONFIG_HOME/sallyport/bearer.yaml).", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "The folder of the tokens (default: $BEARER_STORE, $XDG_STATE_HOME/sallyport/bearer).", valueName: "dir"))
  var store: String?

  @Option(
    help: ArgumentHelp(
      "Where the tokens' key is: auto, keyring (Secret Service) or file.", valueName: "place"))
  var key: KeyPlace = .automatic

  @Flag(help: "Print one JSON value.")
  var json = false

  @Flag(help: "Print a line about each request on standard error, without tokens.")
  var debug = false

  /// The settings, whole.
  func settings() throws(Failure) -> BearerSettings {
    let environment = ProcessInfo.processInfo.environment
    guard let path = config ?? BearerSettings.defaultPath(environment: environment) else {
      throw Failure(.configuration, "there is no place for the configuration", hint: "set HOME, or use --config FILE")
    }
    do throws(ConfigurationErrors) { return try BearerSettings(file: path, environment: environment) } catch {
      let hint =
        FileManager.default.fileExists(atPath: path)
        ? "`bearer providers check` tries the providers of a configuration without faults"
        : "write it: `bearer providers check --example` prints one, `bearer --help` names its place"
      throw Failure(.configuration, error.messages + [.hint(hint)])
    }
  }

  /// Where tokens are kept.
  func tokenStore() throws(Failure) -> any TokenStore {
    try StorePlace(folder: store, key: key, environment: ProcessInfo.processInfo.environment).store()
  }

  /// Providers, accounts and how to reach them.
  ///
  /// - Parameter exchangeTime: The time for one exchange with a provider.
  func access(exchangeTime: Duration = Network.exchangeTime) throws(Failure) -> AccountAccess {
    AccountAccess(settings: try settings(), store: try tokenStore(), isDebugging: debug, exchangeTime: exchangeTime)
  }
}

/// The option of commands that use one account.
struct AccountOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The account at the provider (default: account of its entry, otherwise the one without a name).",
      valueName: "name"))
  var account: String?

  func validate() throws {
    if let problem = account.flatMap(ProviderUse.problem(ofAccount:)) { throw ValidationError("--account \(problem)") }
  }
}

/// An account: who has tokens of a provider.
struct Account {
  let provider: IdentityProvider
  /// The name in the store: that of the provider, or `work/ada` for an account with a name. No provider's name has a
  /// slash.
  let name: String

  /// The words that choose it in a command.
  var words: String {
    name == provider.id ? provider.id : "--account \(name.dropFirst(provider.id.utf8.count + 1)) \(provider.id)"
  }

  /// The name in the store of an account called `account`; of the one without a name if that is `nil` or the
  /// provider's.
  static func storedName(_ account: String?, at provider: String) -> String {
    account.flatMap { $0 == provider ? nil : "\(provider)/\($0)" } ?? provider
  }
}

/// The accounts of a configuration.
struct AccountAccess {
  let settings: BearerSettings
  let store: any TokenStore
  let isDebugging: Bool
  let exchangeTime: Duration

  /// The provider called `name`; without a name, the default one.
  func provider(_ name: String?) throws(Failure) -> IdentityProvider {
    let names = settings.providers.map(\.id).joined(separator: ", ")
    guard let name else {
      if let standard = settings.standard { return standard }
      throw Failure(.usage, "there are several providers", hint: "name one of them: \(names)")
    }
    guard let provider = settings.provider(name) else {
      throw Failure(.usage, "there is no provider \(name)", hint: "the configuration has \(names)")
    }
    return provider
  }

  /// An account at the provider called `provider`; without a name, the default one of the entry.
  func account(_ provider: String?, _ option: AccountOption) throws(Failure) -> Account {
    account(try self.provider(provider), option)
  }

  func account(_ provider: IdentityProvider, _ option: AccountOption) -> Account {
    let name = option.account ?? settings.use(of: provider.id).account
    return Account(provider: provider, name: Account.storedName(name, at: provider.id))
  }

  /// A client of `provider`.
  func client(_ provider: IdentityProvider) -> ProviderClient {
    let attester = settings.use(of: provider.id).attestations.map { ProgramAttester($0, clientID: provider.clientID) }
    return ProviderClient(
      provider: provider,
      dependencies: Network.dependencies(
        provider, attester: attester, isDebugging: isDebugging, exchangeTime: exchangeTime))
  }

  /// The provider itself, and those to try when it cannot be reached.
  func chain(_ provider: IdentityProvider) -> [ProviderClient] {
    ([provider] + provider.fallbacks.compactMap(settings.provider)).map(client)
  }

  /// The tokens of an account; `nil` if there are none.
  func stored(_ account: Account) throws(Failure) -> StoredAccount? {
    do throws(TokenStoreError) { return try store.account(account.name) } catch { throw Failure(error) }
  }

  /// A client of the provider that issued the tokens of an account.
  func issuer(_ account: Account) throws(Failure) -> ProviderClient {
    let issuer = try stored(account)?.providerID
    let candidates = chain(account.provider)
    return candidates.first { $0.provider.id == issuer } ?? candidates[0]
  }

  /// The session of an account, at the provider that issued its tokens.
  func session(_ account: Account) throws(Failure) -> IssuerSession {
    let client = try issuer(account)
    return IssuerSession(
      account: account, client: client,
      session: AccountSession(account: account.name, client: client, store: store))
  }
}

/// The session of an account with a client of the provider that issued its tokens: after a failover, that is another
/// provider than the account's own.
struct IssuerSession {
  let account: Account
  let client: ProviderClient
  let session: AccountSession

  /// The provider that issued the tokens.
  var provider: IdentityProvider { client.provider }

  /// Tokens with a valid access token, as `AccountSession.tokens(rejecting:)` has them.
  func tokens(rejecting rejected: String? = nil) async throws(Failure) -> StoredAccount {
    do throws(SessionError) { return try await session.tokens(rejecting: rejected) } catch { throw failure(error) }
  }

  /// The newest ID token, as `AccountSession.idToken()` has it.
  func idToken() async throws(Failure) -> IDToken {
    do throws(SessionError) { return try await session.idToken() } catch { throw failure(error) }
  }

  func failure(_ error: SessionError) -> Failure { Failure(error, at: account, issuer: provider) }
}
