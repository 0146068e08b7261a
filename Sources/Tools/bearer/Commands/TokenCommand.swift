internal import ArgumentParser
internal import Commands
internal import Foundation
internal import OIDCClient

struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token",
    abstract: "Print a valid access token.",
    discussion: """
      Renews the token if less than a minute of it remains; of many calls at once, one does. Examples:
        curl --oauth2-bearer "$(bearer token work)" https://api.example.com/
        bearer token work --output curl | curl --config - https://api.example.com/
        bearer token work --header GET https://api.example.com/ |
          curl -H @- https://api.example.com/

      kubectl reads --output kubectl, as the command of a user's `exec`; with --id it gets the newest ID token.

      A token that is bound to a key (DPoP) is of no use alone, and is printed with --header or --json only.
      """)

  @OptionGroup var options: BearerOptions
  @OptionGroup var chosen: AccountOption

  @Argument(help: "The provider (default: the one of the configuration).")
  var provider: String?

  @Option(
    parsing: .upToNextOption,
    help: ArgumentHelp(
      "Print header fields for a request with this method to this URL; needed for tokens that are bound to a key (DPoP).",
      valueName: "method url"))
  var header: [String] = []

  @Option(
    name: .customLong("dpop-nonce"),
    help: ArgumentHelp(
      "The nonce of the proof that --header prints: what a service asked for in its field DPoP-Nonce.",
      valueName: "text"))
  var nonce: String?

  @Option(
    help: ArgumentHelp(
      "Renew the token if it is still the one in this file (- is standard input), which a service answered with 401.",
      valueName: "file"))
  var rejected: String?

  @Option(help: ArgumentHelp("Give up an exchange with the provider after so many seconds.", valueName: "seconds"))
  var timeout: Int = 30

  @Flag(help: "Print the ID token of the sign-in in place of the access token; only --output kubectl renews it.")
  var id = false

  @Option(
    help: ArgumentHelp(
      "Print the token for another program: kubectl (ExecCredential) or curl (lines for --config).",
      valueName: "program"))
  var output: Reader?

  /// A program that reads the token.
  enum Reader: String, ExpressibleByArgument, CaseIterable {
    /// `ExecCredential` of client.authentication.k8s.io.
    case kubectl
    /// Lines for `curl --config`.
    case curl
  }

  private struct Output: Encodable {
    let access_token: String
    let token_type: String
    /// Left out if the token is used until a service refuses it.
    let expires_at: Int?
    let scope: String?
    /// What the token says that it is bound to: `x5t#S256` or `jkt`, and the hash.
    let cnf: [String: String]?
  }

  func validate() throws {
    guard !id || (header.isEmpty && rejected == nil && !options.json && output != .curl) else {
      throw ValidationError("--id stands alone, or with --output kubectl")
    }
    guard [output != nil, !header.isEmpty, options.json].count(where: { $0 }) <= 1 else {
      throw ValidationError("--output, --header and --json exclude one another")
    }
    guard header.isEmpty || (header.count == 2 && URL(string: header[1])?.host() != nil) else {
      throw ValidationError("--header needs a method and a URL")
    }
    if header.count == 2, let url = URL(string: header[1]), url.user() != nil || url.password() != nil {
      throw ValidationError("the URL of --header must not contain a user or a password")
    }
    guard (1...3600).contains(timeout) else { throw ValidationError("--timeout must be 1 to 3600") }
    guard let nonce else { return }
    guard !header.isEmpty else { throw ValidationError("--dpop-nonce needs --header") }
    // RFC 9449, section 8.1.
    guard (1...1024).contains(nonce.utf8.count),
      nonce.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C })
    else { throw ValidationError("--dpop-nonce must be the value of the field DPoP-Nonce, as it is") }
  }

  func run() async throws {
    let access = try options.access(exchangeTime: .seconds(timeout))
    let account = try access.account(provider, chosen)
    if id { return try await printIDToken(access, account) }
    let rejected = try rejected.map(InputFile.firstLine)
    let session = try access.session(account)
    let tokens = try await session.tokens(rejecting: rejected)
    if !header.isEmpty {
      try printHeader(tokens, session.provider)
    } else if options.json {
      JSONOutput.print(
        Output(
          access_token: tokens.tokens.accessToken, token_type: tokens.tokens.tokenType,
          expires_at: tokens.expiryInSeconds, scope: tokens.tokens.scope, cnf: tokens.confirmation))
    } else if tokens.isBound {
      throw Failure.bound(account)
    } else if let output {
      try print(tokens, session.provider, for: output)
    } else {
      StandardOutput.write(tokens.tokens.accessToken + "\n")
    }
  }

  private func print(_ tokens: StoredAccount, _ provider: IdentityProvider, for reader: Reader) throws(Failure) {
    switch reader {
    case .kubectl:
      JSONOutput.print(
        try ExecCredential(
          token: tokens.tokens.accessToken, expiresAt: tokens.expiresAt,
          environment: ProcessInfo.processInfo.environment))
    case .curl:
      StandardOutput.write(
        CurlConfiguration.text(token: tokens.tokens.accessToken, certificate: provider.trust.clientCertificate))
    }
  }

  private func printIDToken(_ access: AccountAccess, _ account: Account) async throws(Failure) {
    if output == .kubectl {
      let token = try await access.session(account).idToken()
      JSONOutput.print(
        try ExecCredential(
          token: token.text, expiresAt: token.claims.expiresAt, environment: ProcessInfo.processInfo.environment))
      return
    }
    guard let tokens = try access.stored(account) else { throw Failure(.notSignedIn, at: account) }
    guard let token = tokens.tokens.idToken else {
      throw Failure(.notOffered("ID tokens: the scope openid is missing"), at: try access.issuer(account).provider)
    }
    StandardOutput.write(token + "\n")
  }

  private func printHeader(_ tokens: StoredAccount, _ provider: IdentityProvider) throws(Failure) {
    guard tokens.isBound, let key = tokens.dpopKey, let url = URL(string: header[1]) else {
      StandardOutput.write("Authorization: Bearer \(tokens.tokens.accessToken)\n")
      return
    }
    do throws(OIDCError) {
      let proof = try key.proof(
        method: header[0].uppercased(), url: url, accessToken: tokens.tokens.accessToken, nonce: nonce,
        jti: UUID().uuidString, now: Date())
      StandardOutput.write("Authorization: DPoP \(tokens.tokens.accessToken)\nDPoP: \(proof)\n")
    } catch {
      throw Failure(error, at: provider)
    }
  }
}

extension TokenConfirmation {
  /// The claim `cnf`, as a token has it.
  var claim: [String: String] {
    switch self {
    case .certificate(let hash): ["x5t#S256": hash]
    case .key(let thumbprint): ["jkt": thumbprint]
    }
  }
}

extension StoredAccount {
  /// What the access token says that it is bound to, as its claim `cnf`.
  var confirmation: [String: String]? {
    TokenConfirmation(accessToken: tokens.accessToken)?.claim
  }

  /// The hash of the certificate that the access token is bound to (RFC 8705, section 3.1).
  var boundCertificate: String? { confirmation?["x5t#S256"] }

  /// When the access token expires, in seconds since 1970; `nil` if it is used until a service refuses it.
  var expiryInSeconds: Int? { isOpenEnded ? nil : Int(expiresAt.timeIntervalSince1970) }
}
