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

  /// Creates a result about `key`, whose value has `origin`. Line breaks in `text` become blanks.
  public init(_ outcome: Outcome, _ key: String, from origin: SettingSource, _ text: String, hint: String? = nil) {
    self.outcome = outcome
    self.key = key
    self.origin = origin
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
