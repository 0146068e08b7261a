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

  @Flag(help: "Print the JSON Schema (draft 2020-12) of the configuration file and exit.")
  var schema = false

  @Flag(help: "Print an example of the configuration file with every key and exit.")
  var example = false

  @Flag(help: "Print the reference of all keys in Markdown and exit.")
  var reference = false

  func validate() throws {
    guard [schema, example, reference].count(where: \.self) <= 1 else {
      throw ValidationError("Only one of --schema, --example and --reference can be given.")
    }
  }

  func run() async throws {
    if schema { return Console.write(SettingsDocuments.backend.schema) }
    if example { return Console.write(SettingsDocuments.backend.example) }
    if reference { return Console.write(SettingsDocuments.backend.reference) }
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
