internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient
internal import QREncoding

extension StoredAccount {
  /// The words after the name of the provider: which client it is, if it is a machine account.
  fileprivate var machineText: String { isOfMachine ? " as the client \(TerminalText.printable(clientID))" : "" }
}

struct LoginCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "login",
    abstract: "Sign in with a provider.",
    discussion: """
      Opens the browser, or prints the address to open. On a machine without a browser, use --device where the \
      provider offers it, otherwise --paste. An entry with grant: client_credentials asks for a new token, without a \
      person. Example:
        bearer login work
        bearer login --device work
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  @Flag(help: "Show a code to confirm on another device (device grant).")
  var device = false

  @Flag(help: "Open the address anywhere, and paste the one that the browser ends at.")
  var paste = false

  @Option(
    help: ArgumentHelp(
      "Sign in with this user name and a password, which is asked for or read from standard input. The entry must have "
        + "password_grant: true.", valueName: "name"))
  var username: String?

  @Option(
    help: ArgumentHelp(
      "The nonce of the ID token, where a service that is to accept it asks for one.", valueName: "text"))
  var nonce: String?

  @Option(
    help: ArgumentHelp(
      "A further parameter of the request, such as prompt=login; may be given several times. It replaces one of the "
        + "entry.", valueName: "name=value"))
  var parameter: [String] = []

  @Flag(help: "Print the address, and start no browser.")
  var noBrowser = false

  @Option(help: ArgumentHelp("Give up after so many seconds.", valueName: "seconds"))
  var timeout: Int = 300

  /// The longest address that is pasted, in bytes: some providers' codes have thousands.
  private static let longestAddress = 65_536

  private struct Output: Encodable {
    let account: String
    let provider: String
    let user: String?
    /// Left out if the token is used until a service refuses it.
    let expires_at: Int?
    let renewable: Bool
    let bound_to_key: Bool
  }

  func validate() throws {
    guard [device, paste, username != nil].count(where: { $0 }) <= 1 else {
      throw ValidationError("--device, --paste and --username exclude one another")
    }
    guard nonce == nil || !(device || username != nil) else {
      throw ValidationError("--nonce is for sign-ins in a browser")
    }
    let parameters = try parameters()
    guard parameters.count <= ProviderVariations.mostParameters else {
      throw ValidationError("--parameter can be given at most \(ProviderVariations.mostParameters) times")
    }
    guard (1...3600).contains(timeout) else { throw ValidationError("--timeout must be 1 to 3600") }
  }

  /// The values of `--parameter`, by their names.
  private func parameters() throws -> [String: String] {
    var parameters: [String: String] = [:]
    for text in parameter {
      guard let sign = text.firstIndex(of: "=") else {
        throw ValidationError("--parameter must be name=value: \(text)")
      }
      let (name, value) = (String(text[..<sign]), String(text[text.index(after: sign)...]))
      if let problem = ProviderVariations.problem(ofParameter: name, value) {
        throw ValidationError("--parameter \(text): \(problem)")
      }
      guard parameters.updateValue(value, forKey: name) == nil else {
        throw ValidationError("--parameter \(name) is given twice")
      }
    }
    return parameters
  }

  func run() async throws {
    // A provider that answers slowly cannot make the command wait longer than it was told to.
    let access = try options.access(exchangeTime: min(.seconds(timeout), Network.exchangeTime))
    let account = try access.account(provider, chosen)
    let provider = account.provider
    guard !provider.isOfMachine || !(device || paste || noBrowser || username != nil || nonce != nil) else {
      throw Failure(
        .usage, "\(provider.id) is a machine account, and no person signs in",
        hint:
          "`bearer login \(provider.id)` asks for a token, and so does `bearer token \(provider.id)` when it needs one")
    }
    guard nonce == nil || provider.type == .openIDConnect else {
      throw Failure(.notOffered("an ID token for --nonce: its entry has type: oauth2"), at: provider, for: account)
    }
    let credentials = try username.map { Credentials(username: $0, password: try password(for: $0)) }
    // A code can be used once: what keeps the tokens from being stored is found before the person signs in.
    do throws(TokenStoreError) { try access.store.prepare(for: account.name) } catch { throw Failure(error) }
    let (tokens, client) = try await signIn(account, access, credentials)
    if options.json {
      JSONOutput.print(
        Output(
          account: account.name, provider: tokens.providerID, user: tokens.user?.username,
          expires_at: tokens.expiryInSeconds, renewable: tokens.tokens.refreshToken != nil || tokens.isOfMachine,
          bound_to_key: tokens.isBound))
    } else {
      let user = tokens.user.map { " as \(TerminalText.printable($0.username))" } ?? tokens.machineText
      StandardOutput.write("signed in at \(client.provider.name)\(user)\n")
    }
  }

  /// Signs in at the provider, and at the next ones while those before cannot be reached.
  private func signIn(
    _ account: Account, _ access: AccountAccess, _ credentials: Credentials?
  ) async throws -> (StoredAccount, ProviderClient) {
    let parameters = try parameters()
    let chain = access.chain(account.provider).map { client in
      ProviderClient(
        provider: client.provider.adding(parameters: parameters), dependencies: client.dependencies)
    }
    for (index, client) in chain.enumerated() {
      do {
        let session = AccountSession(account: account.name, client: client, store: access.store)
        let tokens = try await grant(client, credentials) { tokens in
          do throws(SessionError) { try await session.replace(by: tokens) } catch {
            throw Failure(error, at: account, issuer: client.provider)
          }
        }
        return (tokens, client)
      } catch let error as OIDCError {
        guard error.permitsFailover, index + 1 < chain.count else {
          throw Failure(error, at: client.provider, for: account)
        }
        let warning = "warning: \(client.provider.id): \(error); trying \(chain[index + 1].provider.id)"
        StandardError.write(TerminalText.printable(warning) + "\n")
      }
    }
    throw Failure(.internalError, "there is no provider")
  }

  /// Signs in at one provider, and calls `store` with the tokens.
  private func grant(
    _ client: ProviderClient, _ credentials: Credentials?, store: (StoredAccount) async throws -> Void
  ) async throws -> StoredAccount {
    let account: StoredAccount
    if client.provider.isOfMachine {
      account = try await client.ownTokens()
    } else if let credentials {
      StandardError.write("warning: the password passes through this program (password grant); RFC 9700 forbids it\n")
      account = try await client.signIn(with: credentials)
    } else if device {
      account = try await confirm(client)
    } else if paste {
      account = try await pasted(client)
    } else {
      return try await BrowserSignIn(
        client: client, nonce: nonce, startsBrowser: !noBrowser, limit: .seconds(timeout)
      ).run(storing: store)
    }
    try await store(account)
    return account
  }

  private func confirm(_ client: ProviderClient) async throws -> StoredAccount {
    let authorization = try await client.beginDeviceGrant()
    let address = authorization.completeURI ?? authorization.verificationURI
    var text = "open \(authorization.verificationURI) and enter \(authorization.userCode)\n"
    if StandardError.isTerminal, let code = try? QRCode(address) { text += code.terminalText() }
    StandardError.write(TerminalText.printableLines(text))
    let end = Date().addingTimeInterval(TimeInterval(timeout))
    do throws(OIDCError) { return try await client.finish(authorization, within: .seconds(timeout)) } catch {
      guard error == .deviceCodeExpired, end < authorization.expiresAt, Date() >= end else { throw error }
      throw Failure(
        .retryLater, "no_answer: the code was not confirmed within \(timeout) s", hint: "--timeout allows more time")
    }
  }

  private func pasted(_ client: ProviderClient) async throws -> StoredAccount {
    // No process listens there: the browser shows an error, and the address in its bar is what is wanted.
    let redirectURI = client.provider.endpoints.redirectURI?.absoluteString ?? "http://127.0.0.1:1/callback"
    let request = try await client.begin(redirectURI: redirectURI, nonce: nonce)
    let limit = request.lifetime.map { " within \($0) s" } ?? ""
    StandardError.write("open this address in any browser\(limit):\n\n\(request.url.absoluteString)\n\n")
    StandardError.write("it ends at an address that begins with \(redirectURI) and cannot be shown; paste it here:\n")
    let line = try answer("address was pasted") { $0.askLong("", longest: Self.longestAddress, until: $1) } ?? ""
    guard let redirect = URL(string: line.trimmingCharacters(in: .whitespaces)), redirect.host() != nil else {
      throw Failure(.badData, "this is no address", hint: "paste the whole line of the browser's address bar")
    }
    return try await client.finish(redirect, of: request)
  }

  private func password(for username: String) throws(Failure) -> String {
    let question = "password of \(TerminalText.printable(username)): "
    let password = try answer("password was given") { $0.ask(question, isSecret: true, until: $1) }
    guard let password, !password.isEmpty else {
      throw Failure(.usage, "there is no password", hint: "type it, or write it to standard input")
    }
    return password
  }

  /// The line that `ask` gets at the terminal until the end of the time, or the first one of standard input.
  ///
  /// - Parameter what: What is missing without it, for the error: `password was given`.
  /// - Throws: `.retryLater` if there is none in time.
  private func answer(
    _ what: String, at ask: (Terminal, ContinuousClock.Instant) -> String?
  ) throws(Failure) -> String? {
    let end = ContinuousClock.now + .seconds(timeout)
    let line: String?
    if StandardInput.isTerminal, let terminal = Terminal() {
      line = ask(terminal, end)
    } else {
      line = try InputFile.firstLineInTime("-", until: end)
    }
    guard line != nil || ContinuousClock.now < end else {
      throw Failure(.retryLater, "no_answer: no \(what) within \(timeout) s", hint: "--timeout allows more time")
    }
    return line
  }
}
