public import Settings

/// What one look at the world around a gate has shown.
public struct ProbeResult: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    case passed
    /// It works, and an operator should look at it.
    case warning
    case failed
  }

  public let outcome: Outcome
  /// The key whose value was tried, `tls.cert_file`.
  public let key: String
  /// Where that value comes from.
  public let origin: SettingSource
  /// What was seen, on one line.
  public let text: String
  /// What to do about it.
  public let hint: String?

  /// A result about the value of `key` in `settings`; line breaks in `text` become blanks.
  public init(_ outcome: Outcome, _ key: String, of settings: GateSettings, _ text: String, hint: String? = nil) {
    self.outcome = outcome
    self.key = key
    origin = settings.effective.first { $0.key == key }?.origin ?? .standard
    self.text = text.split(whereSeparator: \.isNewline).joined(separator: " ")
    self.hint = hint
  }
}

extension ProbeResult: CustomStringConvertible {
  /// `file:line:col: key: text`, on one line, without the hint.
  public var description: String {
    let place = "\(origin)"
    return (place.isEmpty ? "" : "\(place): ") + "\(key): \(text)"
  }
}

/// Collects what probes of the values of some settings show.
struct ProbeReport {
  private let settings: GateSettings
  private(set) var results: [ProbeResult] = []

  init(_ settings: GateSettings) { self.settings = settings }

  mutating func pass(_ key: String, _ text: String) { add(.passed, key, text, nil) }
  mutating func warn(_ key: String, _ text: String, hint: String? = nil) { add(.warning, key, text, hint) }
  mutating func fail(_ key: String, _ text: String, hint: String? = nil) { add(.failed, key, text, hint) }

  mutating func fail(_ fault: StartFault) { fail(fault.key, fault.reason, hint: fault.hint) }

  private mutating func add(_ outcome: ProbeResult.Outcome, _ key: String, _ text: String, _ hint: String?) {
    results.append(ProbeResult(outcome, key, of: settings, text, hint: hint))
  }
}
