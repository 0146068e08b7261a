internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import GateRuntime
internal import Preflight
internal import Settings

/// Says everything that is wrong with a configuration, and with what it names.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Checks a configuration, and what it needs: certificates, store, upstreams, the address to listen at.",
    discussion: """
      Reads the configuration as run does and tells every fault at once, each with its file, line and column. If there \
      is none, tries what the gate would need, without changing anything; --offline leaves that out. Exits 78 for a fault \
      in the configuration, 1 if it is sound but something that it needs is not there, and 0 otherwise, with warnings or \
      without.

      Example:

        sallyport check -c /etc/sallyport/sallyport.yaml

      Two documents come from the same definition as the reader of the file. The schema is for editors and validators, \
      the reference for people:

        sallyport check --schema > sallyport.schema.json
      """)

  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Write everything as one JSON document.")
  var json = false

  @Flag(help: "Print the settings in force as YAML, each with where it comes from; secrets are masked.")
  var effective = false

  @Flag(help: "Look at nothing but the configuration and the files that it names.")
  var offline = false

  @Flag(help: "Print the JSON Schema (draft 2020-12) of the configuration file, and do nothing else.")
  var schema = false

  @Flag(help: "Print the reference of all keys in Markdown, and do nothing else.")
  var reference = false

  func validate() throws {
    if schema && reference { throw ValidationError("--schema and --reference exclude each other.") }
  }

  func run() async throws {
    if schema { return Console.write(ConfigurationSchema.text) }
    if reference { return Console.write(ConfigurationReference.text) }
    let status: Int32
    do throws(SallyportError) {
      let examination = Self.judged(try options.loader().examine())
      let probes = offline ? [] : await Self.probe(examination)
      let report = CheckReport(examination: examination, probes: probes)
      tell(report)
      status = report.status
    } catch {
      throw error.told()
    }
    if status != 0 { throw ExitCode(status) }
  }

  private func tell(_ report: CheckReport) {
    if json { return Console.print(report.json(withEffective: effective)) }
    let complaints = report.complaints
    if !complaints.isEmpty { Console.error(complaints) }
    guard let settings = report.examination.settings else { return }
    if effective { Console.write(settings.effectiveYAML) } else { Console.print(report.findings) }
  }

  /// With what libpq has against the URL of the store.
  private static func judged(_ examination: ConfigurationDiagnostics) -> ConfigurationDiagnostics {
    do throws(StartFault) {
      try examination.settings?.store.judge()
      return examination
    } catch {
      return examination.refusing(error.key, error.reason, hint: error.hint)
    }
  }

  /// What the world around the gate says, if there are settings to try.
  private static func probe(_ examination: ConfigurationDiagnostics) async -> [ProbeResult] {
    guard let settings = examination.settings else { return [] }
    let store = try? settings.store.makeStore(mostWaiting: settings.mostWaitingForStore)
    return await Preflight(settings, store: store, at: .now()).run()
  }
}
