public import Settings

/// What one look at the world around a gate has shown.
public struct ProbeResult: Sendable, Hashable {
  public enum Outcome: String, Sendable, Hashable, CaseIterable {
    case passed
    /// It works, and somebody should look at it.
    case warning
    case failed
  }

  public let outcome: Outcome
  /// The key whose value was tried, `tls.cert_file`.
  public let key: String
  /// Where that value comes from.
  public let origin: Origin
  /// What was seen, on one line.
  public let text: String
  /// What to do about it.
  public let hint: String?
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
  private let origins: [String: Origin]
  private(set) var results: [ProbeResult] = []

  init(_ settings: GateSettings) {
    origins = Dictionary(settings.effective.map { ($0.key, $0.origin) }) { first, _ in first }
  }

  mutating func pass(_ key: String, _ text: String) { add(.passed, key, text) }
  mutating func warn(_ key: String, _ text: String, hint: String? = nil) { add(.warning, key, text, hint: hint) }
  mutating func fail(_ key: String, _ text: String, hint: String? = nil) { add(.failed, key, text, hint: hint) }

  mutating func add(_ outcome: ProbeResult.Outcome, _ key: String, _ text: String, hint: String? = nil) {
    let line = text.split(whereSeparator: \.isNewline).joined(separator: " ")
    results.append(
      ProbeResult(outcome: outcome, key: key, origin: origins[key] ?? .standard, text: line, hint: hint))
  }
}
