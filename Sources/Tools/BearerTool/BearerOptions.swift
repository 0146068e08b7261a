internal import ArgumentParser
internal import BearerSettings
internal import Commands
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
    guard let path = config ?? BearerSettings.defaultPath(environment: ProcessInfo.processInfo.environment) else {
      throw Failure(.configuration, "there is no place for the configuration", hint: "set HOME, or use --config FILE")
    }
    do throws(BearerSettingsErrors) { return try BearerSettings(file: path) } catch {
      let hint =
        FileManager.default.fileExists(atPath: path)
        ? "`bearer providers check` tries the providers of a configuration without faults"
        : "write it: `bearer --help` names its place, the manual has an example"
      throw Failure(.configuration, error.faults.map { .error("\($0)") } + [.hint(hint)])
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

/// The accounts of a configuration: each is called like its provider.
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

  /// A client of `provider`.
  func client(_ provider: IdentityProvider) -> ProviderClient {
    ProviderClient(
      provider: provider,
      dependencies: Network.dependencies(provider, isDebugging: isDebugging, exchangeTime: exchangeTime))
  }

  /// The provider itself, and those to try when it cannot be reached.
  func chain(_ provider: IdentityProvider) -> [ProviderClient] {
    ([provider] + provider.fallbacks.compactMap(settings.provider)).map(client)
  }

  /// A client of the provider that issued the tokens of an account.
  func issuer(_ provider: IdentityProvider) throws(Failure) -> ProviderClient {
    let issuer: String?
    do throws(TokenStoreError) { issuer = try store.account(provider.id)?.providerID } catch { throw Failure(error) }
    let candidates = chain(provider)
    return candidates.first { $0.provider.id == issuer } ?? candidates[0]
  }

  /// The session of an account, at the provider that issued its tokens.
  func session(_ provider: IdentityProvider) throws(Failure) -> AccountSession {
    AccountSession(account: provider.id, client: try issuer(provider), store: store)
  }
}
