internal import ByteCoding
internal import Commands
internal import MFASettings

/// The result of a check, as text and as JSON.
struct CheckReport {
  let diagnostics: SettingsDiagnostics
  /// Empty if no probe ran.
  let probes: [ProbeResult]

  /// The exit status: 78 for a fault, 1 for a failed probe, otherwise 0.
  var status: Int32 {
    if diagnostics.settings == nil { return Status.configuration.rawValue }
    return probes.contains { $0.outcome == .failed } ? Status.problems.rawValue : 0
  }

  /// What is allowed and should be known.
  private var warnings: [(key: String, text: String)] {
    guard let settings = diagnostics.settings else { return [] }
    var warnings: [(String, String)] = []
    if settings.texting == .log {
      warnings.append(("sms.sink", "codes are written to the log: a reader of the log can sign in"))
    }
    if settings.database == .ephemeral { warnings.append(("database", "all data is lost when the backend exits")) }
    if settings.admin == nil {
      warnings.append(("admin.listen", "not set: status, reload and drain cannot reach the backend"))
    }
    return warnings
  }

  // MARK: For people

  /// The errors, the warnings, and each distinct hint once.
  var complaints: [Message] {
    let failed = probes.filter { $0.outcome == .failed }
    var hints = SettingsErrors.hints(for: diagnostics.faults)
    for hint in failed.compactMap(\.hint) where !hints.contains(hint) { hints.append(hint) }
    return diagnostics.faults.map { .error("\($0)") } + failed.map { .error(described($0)) }
      + warnings.map { .warning("\(placed($0.key))\($0.key): \($0.text)") } + hints.map(Message.hint)
  }

  /// The `ok:` lines and a summary line.
  var findings: String {
    let passed = probes.filter { $0.outcome == .passed }.map { "ok: \($0.key): \($0.text)" }
    let failed = probes.count { $0.outcome == .failed }
    let parts = [
      "configuration valid", failed == 0 ? nil : "\(failed) of \(probes.count) probes failed",
      warnings.isEmpty ? nil : warnings.count == 1 ? "1 warning" : "\(warnings.count) warnings",
    ]
    return (passed + [parts.compactMap(\.self).joined(separator: "; ")]).joined(separator: "\n")
  }

  /// The effective settings, one line each, with their sources.
  var effectiveYAML: String {
    diagnostics.effective.map { "\($0.key): \(JSONText.quote($0.value))  # \($0.origin)" }.joined(separator: "\n")
  }

  private func described(_ probe: ProbeResult) -> String { "\(placed(probe.key))\(probe.key): \(probe.text)" }

  /// The place of a key with a colon, or nothing if its default applies.
  private func placed(_ key: String) -> String {
    let place = "\(diagnostics.origin(of: key))"
    return place.isEmpty ? "" : place + ": "
  }

  // MARK: For programs

  private struct Entry: Encodable {
    var origin: String
    var file: String?
    var line: Int?
    var column: Int?
    var key: String?
    var reason: String?
    var text: String?
    var outcome: String?
    var hint: String?
    var value: String?

    init(_ source: BackendSettingSource) {
      switch source {
      case .file(let name, let line, let column):
        origin = "file"
        file = name
        self.line = line
        self.column = column
      case .environment(let name): origin = name
      case .flag(let name): origin = name
      case .nowhere: origin = "default"
      }
    }
  }

  private struct Document: Encodable {
    let status: Int32
    let faults: [Entry]
    let warnings: [Entry]
    let probes: [Entry]
    let effective: [Entry]?
  }

  /// `{"effective", "faults", "probes", "status", "warnings"}`
  func json(withEffective: Bool) -> String {
    let document = Document(
      status: status, faults: diagnostics.faults.map(Self.entry),
      warnings: warnings.map { warning in
        entry(warning.key) { $0.text = warning.text }
      },
      probes: probes.map { probe in
        entry(probe.key) { entry in
          entry.outcome = probe.outcome.rawValue
          entry.text = probe.text
          entry.hint = probe.hint
        }
      },
      effective: withEffective && diagnostics.settings != nil
        ? diagnostics.effective.map { item in entry(item.key) { $0.value = item.value } } : nil)
    return JSONText.encoding(document, isPretty: true)
  }

  private static func entry(_ fault: SettingsError) -> Entry {
    var entry = Entry(fault.origin)
    entry.key = fault.key
    entry.reason = fault.reason
    entry.hint = fault.hint
    return entry
  }

  private func entry(_ key: String, _ change: (inout Entry) -> Void) -> Entry {
    var entry = Entry(diagnostics.origin(of: key))
    entry.key = key
    change(&entry)
    return entry
  }
}
