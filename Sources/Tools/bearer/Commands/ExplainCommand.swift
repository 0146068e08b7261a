internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient

struct ExplainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Show every rule of an ID token, passed or failed.",
    discussion: """
      Fetches the provider's keys unless --keys names a file with them. The token is sent nowhere. Exit code 1 if a \
      rule does not hold, 65 if it is no token. Example:
        bearer explain --provider work token.txt
      """)

  @OptionGroup var options: BearerOptions

  @Argument(help: "A file with the token; - is standard input.")
  var token: String = "-"

  @Option(help: "The provider (default: the one whose issuer the token names).")
  var provider: String?

  @Option(help: ArgumentHelp("The nonce of the sign-in; without it, the nonce is not compared.", valueName: "text"))
  var nonce: String?

  @Option(help: ArgumentHelp("A file with the access token that came with it.", valueName: "file"))
  var accessToken: String?

  @Option(help: ArgumentHelp("A file with the provider's keys (JWKS), in place of fetching them.", valueName: "file"))
  var keys: String?

  private struct Output: Encodable {
    struct Rule: Encodable {
      let rule: String
      let passed: Bool
      let code: String?
      let reason: String?
    }

    let provider: String
    let algorithm: String
    let key: String?
    let issuer: String?
    let subject: String?
    let rules: [Rule]
  }

  func validate() throws {
    guard [token, accessToken, keys].count(where: { $0 == "-" }) <= 1 else {
      throw ValidationError("standard input can be one of the token, --access-token and --keys")
    }
  }

  func run() async throws {
    let access = try options.access()
    let token = try read()
    let provider = try chosen(token, access)
    let (keys, accessToken) = (try providerKeys(), try accessToken.map(Self.firstLine))
    let findings: [IDTokenVerifier.Finding]
    do throws(OIDCError) {
      findings = try await access.client(provider).findings(
        token, keys: keys, nonce: nonce, accessToken: accessToken)
    } catch {
      throw Failure(error, at: provider)
    }
    let output = Output(
      provider: provider.id, algorithm: token.algorithm, key: token.keyID, issuer: token.claims.issuer,
      subject: token.claims.subject,
      rules: findings.map {
        .init(
          rule: $0.statement, passed: $0.rejection == nil, code: $0.rejection?.code,
          reason: $0.rejection.map { "\($0)" })
      })
    show(output)
    let failed = output.rules.count { !$0.passed }
    guard failed == 0 else {
      throw Failure(.problems, "\(failed) of \(output.rules.count) rules do not hold")
    }
  }

  /// The token, from a file, standard input, or the argument itself.
  private func read() throws(Failure) -> IDToken {
    let text: String
    if token != "-", token.split(separator: ".", omittingEmptySubsequences: false).count == 3, token.hasPrefix("ey"),
      !FileManager.default.fileExists(atPath: token)
    {
      StandardError.write("warning: other users can see the arguments of a program; pass the token by standard input\n")
      text = token
    } else {
      text = try InputFile.firstLine(token)
    }
    do throws(IDTokenRejection) { return try IDToken(text.trimmingCharacters(in: .whitespaces)) } catch {
      throw Failure(.badData, "\(error.code): this is no ID token: \(error)")
    }
  }

  private func chosen(_ token: IDToken, _ access: AccountAccess) throws(Failure) -> IdentityProvider {
    if provider == nil, let issuer = token.claims.issuer,
      let named = access.settings.providers.first(where: { provider in
        // As bytes: anybody can have written the token.
        provider.issuer.map { $0.utf8.elementsEqual(issuer.utf8) } ?? false
      })
    {
      return named
    }
    return try access.provider(provider)
  }

  private func providerKeys() throws -> ProviderKeys? {
    guard let keys else { return nil }
    let bytes = try InputFile.read(keys, largest: ProviderKeys.largest) ?? []
    do throws(OIDCError) { return try ProviderKeys(json: bytes) } catch {
      throw Failure(.badData, "\(keys): it is no JWKS")
    }
  }

  private static func firstLine(_ path: String) throws -> String { try InputFile.firstLine(path) }

  private func show(_ output: Output) {
    if options.json {
      JSONOutput.print(output)
      return
    }
    var lines = ["alg \(output.algorithm), key \(output.key ?? "not named"), provider \(output.provider)"]
    lines += output.rules.map { rule in
      rule.passed ? "passed  \(rule.rule)" : "FAILED  \(rule.rule) (\(rule.code ?? ""): \(rule.reason ?? ""))"
    }
    for line in lines { StandardOutput.write(TerminalText.printable(line) + "\n") }
  }
}
