internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import GateRuntime
internal import Settings

/// Validates a configuration, and probes the files and services that it names.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Checks a configuration, its certificates, store, upstreams and listening addresses.",
    discussion: """
      Reads the configuration as run does and reports every fault with its file, line and column. If there are none, \
      probes what the gate needs, without changing anything; --offline skips the probes. Exits 78 for a fault in the \
      configuration, 1 if a probe fails, and 0 otherwise, also with warnings.

      Example:

        sallyport check
        sallyport check -c gate.yaml

      Three documents are generated from the settings definitions. The schema is for editors and validators, the \
      reference and the example are for people:

        sallyport check --schema > sallyport.schema.json
        sallyport check --example > sallyport.yaml
      """)

  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Print everything as one JSON document.")
  var json = false

  @Flag(help: "Print the effective settings as YAML, each with its source; secrets are masked.")
  var effective = false

  @Flag(help: "Check only the configuration and the files that it names.")
  var offline = false

  @OptionGroup var documents: DocumentOptions

  func run() async throws {
    if let text = documents.text(of: .gate) { return Console.write(text) }
    let loader = try options.loader()
    let diagnostics = Self.judged(loader.examine())
    let probes = offline ? [] : await Self.probe(diagnostics)
    let report = CheckReport(
      diagnostics, probes: probes, foundFile: options.config == nil ? loader.file : nil,
      advice: loader.file == nil ? ConfigurationSearch.ofProcess.advice : nil)
    tell(report, of: diagnostics)
    if report.status != 0 { throw ExitCode(report.status) }
  }

  private func tell(_ report: CheckReport, of diagnostics: ConfigurationDiagnostics<GateSettings>) {
    if json { return Console.print(report.json(withEffective: effective)) }
    Console.tell(report.complaints)
    guard let settings = diagnostics.settings else { return }
    if effective { Console.write(settings.effectiveYAML) } else { Console.print(report.findings) }
  }

  /// Adds a fault if libpq rejects the store's URL, or the store's file is not private.
  private static func judged(
    _ diagnostics: ConfigurationDiagnostics<GateSettings>
  ) -> ConfigurationDiagnostics<GateSettings> {
    do throws(StartError) {
      try diagnostics.settings?.store.judge()
      return diagnostics
    } catch {
      return diagnostics.refusing(error.key, error.reason, hint: error.hint)
    }
  }

  /// Probes what the gate needs, if the configuration is valid.
  private static func probe(_ diagnostics: ConfigurationDiagnostics<GateSettings>) async -> [ProbeResult] {
    guard let settings = diagnostics.settings else { return [] }
    let store = try? settings.store.makeStore(mostWaiting: settings.mostWaitingForStore)
    return await Preflight(settings, store: store, at: .now()).run()
  }
}
