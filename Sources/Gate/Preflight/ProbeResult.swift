public import Settings

/// The result of one probe.
public struct ProbeResult: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    case passed
    /// It works, but an operator should check it.
    case warning
    case failed
  }

  public let outcome: Outcome
  /// The key whose value was probed, for example `tls.cert_file`.
  public let key: String
  /// The origin of that value.
  public let origin: SettingSource
  /// The observation, on one line.
  public let text: String
  /// What the operator can do about it.
  public let hint: String?

  /// Creates a result about `key` in `settings`. Line breaks in `text` become blanks.
  public init(_ outcome: Outcome, _ key: String, of settings: GateSettings, _ text: String, hint: String? = nil) {
    self.outcome = outcome
    self.key = key
    origin = settings.effective.first { $0.key == key }?.origin ?? .standard
    self.text = text.split(whereSeparator: \.isNewline).joined(separator: " ")
    self.hint = hint
  }
}

extension ProbeResult: CustomStringConvertible {
  /// One line without the hint: `file:line:col: key: text`.
  public var description: String {
    let place = "\(origin)"
    return (place.isEmpty ? "" : "\(place): ") + "\(key): \(text)"
  }
}

/// Collects the results of probes.
struct ProbeReport {
  private let settings: GateSettings
  private(set) var results: [ProbeResult] = []

  init(_ settings: GateSettings) { self.settings = settings }

  mutating func pass(_ key: String, _ text: String) { add(.passed, key, text, nil) }
  mutating func warn(_ key: String, _ text: String, hint: String? = nil) { add(.warning, key, text, hint) }
  mutating func fail(_ key: String, _ text: String, hint: String? = nil) { add(.failed, key, text, hint) }

  mutating func fail(_ fault: StartError) { fail(fault.key, fault.reason, hint: fault.hint) }

  private mutating func add(_ outcome: ProbeResult.Outcome, _ key: String, _ text: String, _ hint: String?) {
    results.append(ProbeResult(outcome, key, of: settings, text, hint: hint))
  }
}
