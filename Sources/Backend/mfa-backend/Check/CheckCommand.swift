internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import Foundation

/// Validates a configuration, and probes the files and services that it names.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Checks a configuration, its files, store, gate keys, providers and listening addresses.",
    discussion: """
      Reads the configuration as run does and reports every fault with its file, line and column. If there are none, \
      probes what the backend needs, without changing anything and without sending a message; --offline skips the \
      probes. Exits 78 for a fault in the configuration, 1 if a probe fails, and 0 otherwise, also with warnings.

      Example:

        mfa-backend check -c /etc/mfa/mfa.yaml

      Three documents are generated from the settings definitions. The schema is for editors and validators, the \
      example is a file to start from, and the reference is for people:

        mfa-backend check --schema > mfa-backend.schema.json
      """)

  @OptionGroup var database: DatabaseOptions

  @Flag(help: "Print everything as one JSON document.")
  var json = false

  @Flag(help: "Print the effective settings as YAML, each with its source; a password is masked.")
  var effective = false

  @Flag(help: "Check only the configuration and the files that it names.")
  var offline = false

  @OptionGroup var documents: DocumentOptions

  func run() async throws {
    if let text = documents.text(of: .backend) { return Console.write(text) }
    let diagnostics = FileCheck.judged(database.reader().examine())
    let probes = offline ? [] : await Self.probe(diagnostics)
    let report = CheckReport(diagnostics, probes: probes)
    tell(report, of: diagnostics)
    if report.status != 0 { throw ExitCode(report.status) }
  }

  private func tell(_ report: CheckReport, of diagnostics: ConfigurationDiagnostics<BackendSettings>) {
    if json { return Console.print(report.json(withEffective: effective)) }
    Console.tell(report.complaints)
    guard diagnostics.settings != nil else { return }
    if effective {
      Console.write(SettingsTable.backend.yaml(of: diagnostics.effective))
    } else {
      Console.print(report.findings)
    }
  }

  private static func probe(_ diagnostics: ConfigurationDiagnostics<BackendSettings>) async -> [ProbeResult] {
    guard let settings = diagnostics.settings else { return [] }
    return await BackendProbes(settings, diagnostics).run()
  }
}
