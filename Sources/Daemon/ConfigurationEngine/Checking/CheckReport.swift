internal import ByteCoding
public import Commands

/// The result of the command `check`, as text and as JSON.
public struct CheckReport: Sendable {
  private let isValid: Bool
  private let faults: [ConfigurationError]
  private let warnings: [Warning]
  private let effective: [EffectiveValue]
  private let probes: [ProbeResult]
  private let foundFile: String?
  private let advice: String?

  /// - Parameters:
  ///   - probes: Empty if no probe ran.
  ///   - foundFile: The file, if the command line does not name it.
  ///   - advice: The last hint for a configuration with faults; `nil` for none.
  public init<Settings>(
    _ diagnostics: ConfigurationDiagnostics<Settings>, probes: [ProbeResult], foundFile: String? = nil,
    advice: String? = nil
  ) {
    isValid = diagnostics.settings != nil
    (faults, warnings, effective) = (diagnostics.faults, diagnostics.warnings, diagnostics.effective)
    (self.probes, self.foundFile, self.advice) = (probes, foundFile, advice)
  }

  /// The exit status: 78 for a fault, 1 for a failed probe, otherwise 0.
  public var status: Int32 {
    if !isValid { return Status.configuration.rawValue }
    return probes.contains { $0.outcome == .failed } ? Status.problems.rawValue : 0
  }

  // MARK: For people

  /// The errors, then the warnings, each with its hint.
  public var complaints: [Message] {
    let failures = probes.filter { $0.outcome == .failed }
    let doubts = probes.filter { $0.outcome == .warning }
    let complaints = Message.hinted(
      faults.map { (.error("\($0)"), $0.hint) } + failures.map { (.error("\($0)"), $0.hint) }
        + warnings.map { (.warning("\($0)"), nil) } + doubts.map { (.warning("\($0)"), $0.hint) })
    return isValid ? complaints : complaints + [advice].compactMap(\.self).map(Message.hint)
  }

  /// The `ok:` lines and a summary line.
  public var findings: String {
    let passed = probes.filter { $0.outcome == .passed }.map { "ok: \($0.key): \($0.text)" }
    let failed = probes.count { $0.outcome == .failed }
    let warnings = warnings.count + probes.count { $0.outcome == .warning }
    let parts = [
      foundFile.map { "\($0): configuration valid" } ?? "configuration valid",
      failed == 0 ? nil : "\(failed) of \(probes.count) probes failed",
      warnings == 0 ? nil : warnings == 1 ? "1 warning" : "\(warnings) warnings",
    ]
    return (passed + [parts.compactMap(\.self).joined(separator: "; ")]).joined(separator: "\n")
  }

  // MARK: For programs

  /// `{"effective", "faults", "probes", "status", "warnings"}`
  public func json(withEffective: Bool) -> String {
    let document = Document(
      status: status,
      faults: faults.map { Item($0.origin, $0.key, reason: $0.reason, suggestion: $0.suggestion, hint: $0.hint) },
      warnings: warnings.map { Item($0.origin, $0.key, text: $0.text) },
      probes: probes.map { Item($0.origin, $0.key, text: $0.text, hint: $0.hint, outcome: $0.outcome.rawValue) },
      effective: withEffective && isValid ? effective.map { Item($0.origin, $0.key, value: $0.text) } : nil)
    return JSONText.encoding(document, isPretty: true)
  }

  private struct Document: Encodable {
    let status: Int32
    let faults: [Item]
    let warnings: [Item]
    let probes: [Item]
    let effective: [Item]?
  }

  /// The members that are not `nil`, and the origin; a place in a file adds its name, line and column.
  private struct Item: Encodable {
    let origin: String
    var file: String?
    var line: Int?
    var column: Int?
    let key: String?
    let reason: String?
    let suggestion: String?
    let text: String?
    let hint: String?
    let outcome: String?
    let value: String?

    init(
      _ origin: SettingSource, _ key: String?, reason: String? = nil, suggestion: String? = nil, text: String? = nil,
      hint: String? = nil, outcome: String? = nil, value: String? = nil
    ) {
      self.origin = origin.label
      (self.key, self.reason, self.suggestion) = (key, reason, suggestion)
      (self.text, self.hint, self.outcome, self.value) = (text, hint, outcome, value)
      guard case .file(let name, let line, let column) = origin else { return }
      (file, self.line, self.column) = (name, line, column)
    }
  }
}
