internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import HTTPClientTransport
internal import OIDCClient

struct ProvidersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "providers",
    abstract: "Look at the identity providers of the configuration.",
    subcommands: [Check.self],
    defaultSubcommand: Check.self)

  struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Fetch each provider's metadata and keys, and report what does not hold.",
      discussion: """
        Exit code 1 if there are problems. Example:
          bearer providers check work

        Three documents are generated from the definitions of the settings. The
        schema is for editors and validators, the example is a file to start
        from, and the reference is for people:
          bearer providers check --schema > bearer.schema.json
        """)

    @OptionGroup var options: BearerOptions

    @Argument(help: "The providers (default: all).")
    var providers: [String] = []

    @OptionGroup var documents: DocumentOptions

    func run() async throws {
      if let text = documents.text(of: .bearer) { return Console.write(text) }
      let settings = try options.settings()
      let access = AccountAccess(
        settings: settings, store: try options.tokenStore(), isDebugging: options.debug,
        exchangeTime: Network.exchangeTime)
      var chosen = settings.providers
      if !providers.isEmpty {
        chosen = []
        for name in providers { chosen.append(try access.provider(name)) }
      }
      var reports: [ProviderReport] = []
      for provider in chosen {
        var report = await access.client(provider).report()
        report.proxy = Network.proxySummary(of: provider)
        report.settings = EntryNotes.lines(of: provider, settings.use(of: provider.id))
        if let expiry = Network.certificate(of: provider)?.expiresAt {
          report.clientCertificateExpiry = Int(expiry.timeIntervalSince1970)
          if expiry <= Date() {
            report.problems.append(
              .init(code: "client_certificate_expired", text: "the certificate of cert_file has expired: renew it"))
          }
        }
        reports.append(report)
      }
      if options.json {
        JSONOutput.print(reports)
      } else {
        for report in reports { StandardOutput.write(TerminalText.printableLines(report.text) + "\n") }
      }
      let failed = reports.filter { !$0.problems.isEmpty }.map(\.provider)
      guard failed.isEmpty else {
        throw Failure(.problems, "problems with \(failed.joined(separator: ", "))", hint: "see the lines above")
      }
    }
  }
}

extension ProviderReport {
  fileprivate var text: String {
    var lines = [provider]
    lines.append("  issuer   \(issuer ?? "none (OAuth 2.0)")")
    if !grants.isEmpty { lines.append("  grants   \(grants.joined(separator: ", "))") }
    if let proxy { lines.append("  network  \(proxy)") }
    if let clientCertificate {
      let left = (clientCertificateExpiry ?? 0) - Int(Date().timeIntervalSince1970)
      lines.append("  presents the certificate \(clientCertificate), valid for \(StatusCommand.duration(left))")
    }
    if let keys { lines.append("  keys     \(keys)") }
    if !features.isEmpty { lines.append("  offers   \(features.joined(separator: ", "))") }
    if !refusedAlgorithms.isEmpty {
      lines.append("  refused  \(refusedAlgorithms.joined(separator: ", ")): signatures that bearer does not verify")
    }
    lines += settings.map { "  set      \($0)" }
    lines += problems.map { "  problem  \($0.code): \($0.text)" }
    return lines.joined(separator: "\n")
  }
}
