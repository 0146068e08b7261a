internal import ConfigurationEngine
internal import ConsoleServing
internal import Settings

/// Checks the files of the console over TLS, which may run as another user than the gate.
struct ConsoleProbe {
  let settings: GateSettings

  func run() -> [ProbeResult] {
    guard let console = settings.console else { return [] }
    return ConsoleFiles(of: console).findings.map { finding in
      let origin = settings.effective.first { $0.key == finding.key }?.origin ?? .standard
      return ProbeResult(finding.outcome, finding.key, from: origin, finding.text, hint: finding.hint)
    }
  }
}
