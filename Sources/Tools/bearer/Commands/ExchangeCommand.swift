internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient

struct ExchangeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "exchange",
    abstract: "Print a token for another service, in exchange for that of the account.",
    discussion: """
      Token exchange (RFC 8693). The new token is printed and kept nowhere. Types are access_token, refresh_token, \
      id_token, saml1, saml2, jwt, or a URI. Example:
        bearer exchange work --audience billing --scope read
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  @Option(help: ArgumentHelp("A service that the token is for; may be given several times.", valueName: "name"))
  var audience: [String] = []

  @Option(help: ArgumentHelp("The URL of such a service; may be given several times.", valueName: "url"))
  var resource: [String] = []

  @Option(help: ArgumentHelp("A scope of the token; may be given several times.", valueName: "scope"))
  var scope: [String] = []

  @Option(help: ArgumentHelp("The type of the new token (default: what the provider gives).", valueName: "type"))
  var requestedType: String?

  @Flag(help: "Exchange the ID token of the account in place of its access token.")
  var id = false

  @Option(
    help: ArgumentHelp(
      "A file with the token to exchange in place of the account's; - is standard input.", valueName: "file"))
  var subjectToken: String?

  @Option(help: ArgumentHelp("The type of that token.", valueName: "type"))
  var subjectType: String = ExchangeCommand.usualType

  @Option(help: ArgumentHelp("A file with the token of who acts for the subject.", valueName: "file"))
  var actorToken: String?

  @Option(help: ArgumentHelp("The type of that token.", valueName: "type"))
  var actorType: String = ExchangeCommand.usualType

  private static let usualType = "access_token"

  private struct Output: Encodable {
    let access_token: String
    let issued_token_type: String?
    let token_type: String
    /// In seconds since 1970; left out if the provider does not say.
    let expires_at: Int?
    let scope: String?
    let cnf: [String: String]?
  }

  func validate() throws {
    for (name, type) in [
      ("--requested-type", requestedType), ("--subject-type", subjectType), ("--actor-type", actorType),
    ] where type.map({ TokenExchange.TokenType($0) == nil }) == true {
      throw ValidationError("\(name) must be a URI or one of \(TokenExchange.TokenType.names.joined(separator: ", "))")
    }
    guard !id || subjectToken == nil else { throw ValidationError("--id and --subject-token exclude one another") }
    for (name, type, of, token) in [
      ("--subject-type", subjectType, "--subject-token", subjectToken),
      ("--actor-type", actorType, "--actor-token", actorToken),
    ] where type != Self.usualType && token == nil {
      throw ValidationError("\(name) is the type of \(of), which is missing")
    }
    guard subjectToken != "-" || actorToken != "-" else {
      throw ValidationError("standard input cannot be both tokens")
    }
    for (name, values) in [("--audience", audience), ("--resource", resource), ("--scope", scope)] {
      guard values.count <= TokenExchange.mostValues else {
        throw ValidationError("\(name) can be given at most \(TokenExchange.mostValues) times")
      }
      for value in values
      where value.isEmpty || value.utf8.count > ProviderVariations.longestValue
        || value.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
      {
        throw ValidationError(
          "\(name) must be 1 to \(ProviderVariations.longestValue) bytes without control characters")
      }
    }
    for text in resource where URL(string: text)?.scheme == nil || text.contains("#") {
      throw ValidationError("--resource must be an absolute URL without a fragment: \(text)")
    }
  }

  func run() async throws {
    let access = try options.access()
    let account = try access.account(provider, chosen)
    let start = Date()
    let (subject, key) = try await subject(account, access)
    let actor = try actorToken.map { try Self.token($0, type: actorType) }
    let exchange = TokenExchange(
      subject: subject, actor: actor, audiences: audience, resources: resource, scopes: scope,
      requestedType: requestedType.flatMap { TokenExchange.TokenType($0) })
    let client = try access.issuer(account)
    let answer: TokenResponse
    do throws(OIDCError) { answer = try await client.exchange(exchange, boundTo: key) } catch {
      throw Failure(error, at: client.provider, for: account)
    }
    let tokens = answer.tokens
    guard options.json else {
      guard tokens.tokenType.lowercased() != "dpop" else { throw Failure.boundExchange(account, at: client.provider) }
      StandardOutput.write(tokens.accessToken + "\n")
      return
    }
    JSONOutput.print(
      Output(
        access_token: tokens.accessToken, issued_token_type: answer.issuedType, token_type: tokens.tokenType,
        expires_at: answer.namesLifetime ? Int(start.timeIntervalSince1970 + tokens.expiresIn) : nil,
        scope: tokens.scope, cnf: TokenConfirmation(accessToken: tokens.accessToken)?.claim))
  }

  /// The token to exchange, and the key that it is bound to.
  private func subject(
    _ account: Account, _ access: AccountAccess
  ) async throws -> (TokenExchange.Token, DPoPKey?) {
    if let subjectToken { return (try Self.token(subjectToken, type: subjectType), nil) }
    let session = try access.session(account)
    if id { return (.init(try await session.idToken().text, type: .idToken), nil) }
    let tokens = try await session.tokens()
    return (.init(tokens.tokens.accessToken, type: .accessToken), tokens.isBound ? tokens.dpopKey : nil)
  }

  private static func token(_ path: String, type: String) throws -> TokenExchange.Token {
    let text = try InputFile.firstLine(path).trimmingCharacters(in: .whitespaces)
    guard let type = TokenExchange.TokenType(type), (1...TokenExchange.longestToken).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
      let name = path == "-" ? "standard input" : path
      throw Failure(
        .badData, "the first line of \(name) is no token", hint: "a token has no spaces, and at most 64 KiB")
    }
    return .init(text, type: type)
  }
}
