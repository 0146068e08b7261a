internal import ByteCoding
internal import Commands
internal import FoundationEssentials
internal import GateRuntime
internal import Preflight
internal import Settings

/// The result of a check, as text and as JSON.
struct CheckReport {
  let diagnostics: ConfigurationDiagnostics
  /// Empty if no probe ran.
  let probes: [ProbeResult]
  /// The file, if the command line does not name it.
  var foundFile: String?
  /// `false` if the environment alone was checked.
  var hasFile = true

  /// The exit status: 78 for a fault, 1 for a failed probe, otherwise 0.
  var status: Int32 {
    if diagnostics.settings == nil { return Status.configuration.rawValue }
    return probes.contains { $0.outcome == .failed } ? Status.problems.rawValue : 0
  }

  // MARK: For people

  /// The errors, then the warnings, each with its hint.
  var complaints: [Message] {
    let failures = probes.filter { $0.outcome == .failed }
    let doubts = probes.filter { $0.outcome == .warning }
    let complaints = Message.hinted(
      diagnostics.faults.map { (.error("\($0)"), $0.hint) } + failures.map { (.error("\($0)"), $0.hint) }
        + diagnostics.warnings.map { (.warning("\($0)"), nil) } + doubts.map { (.warning("\($0)"), $0.hint) })
    return hasFile || diagnostics.settings != nil
      ? complaints : complaints + [.hint(ConfigurationSearch.ofProcess.advice)]
  }

  /// The `ok:` lines and a summary line.
  var findings: String {
    let passed = probes.filter { $0.outcome == .passed }.map { "ok: \($0.key): \($0.text)" }
    let failed = probes.count { $0.outcome == .failed }
    let warnings = diagnostics.warnings.count + probes.count { $0.outcome == .warning }
    let parts = [
      foundFile.map { "\($0): configuration valid" } ?? "configuration valid",
      failed == 0 ? nil : "\(failed) of \(probes.count) probes failed",
      warnings == 0 ? nil : warnings == 1 ? "1 warning" : "\(warnings) warnings",
    ]
    return (passed + [parts.compactMap(\.self).joined(separator: "; ")]).joined(separator: "\n")
  }

  // MARK: For programs

  /// `{"effective", "faults", "probes", "status", "warnings"}`
  func json(withEffective: Bool) -> String {
    var report: [String: JSONValue] = [
      "status": .number(Int(status)),
      "faults": .array(diagnostics.faults.map(Self.value)),
      "warnings": .array(diagnostics.warnings.map(Self.value)),
      "probes": .array(probes.map(Self.value)),
    ]
    if withEffective, let settings = diagnostics.settings {
      report["effective"] = .array(settings.effective.map(Self.value))
    }
    return JSONText.encoding(JSONValue.object(report), isPretty: true)
  }

  private static func value(_ fault: ConfigurationError) -> JSONValue {
    object(
      fault.origin,
      [("key", fault.key), ("reason", fault.reason), ("suggestion", fault.suggestion), ("hint", fault.hint)])
  }

  private static func value(_ warning: Settings.Warning) -> JSONValue {
    object(warning.origin, [("key", warning.key), ("text", warning.text)])
  }

  private static func value(_ probe: ProbeResult) -> JSONValue {
    object(
      probe.origin,
      [("outcome", probe.outcome.rawValue), ("key", probe.key), ("text", probe.text), ("hint", probe.hint)])
  }

  private static func value(_ value: EffectiveValue) -> JSONValue {
    object(value.origin, [("key", value.key), ("value", value.text)])
  }

  /// An object of the non-`nil` members and the origin; a place in a file adds its name, line and column.
  private static func object(_ origin: SettingSource, _ members: [(String, String?)]) -> JSONValue {
    var object: [String: JSONValue] = ["origin": .text(origin.label)]
    if case .file(let name, let line, let column) = origin {
      object["file"] = .text(name)
      object["line"] = .number(line)
      object["column"] = .number(column)
    }
    for (name, text) in members { object[name] = text.map(JSONValue.text) }
    return .object(object)
  }
}
