internal import ByteCoding

/// One thing that is wrong in the configuration.
public struct Fault: Sendable, Hashable {
  /// Where it stands.
  public let origin: SettingSource
  /// The key as the file writes it, `routes[0].upstream`, or the variable of the guide; `nil` where no key was reached.
  public let key: String?
  /// What is wrong, for people.
  public let reason: String
  /// What was probably meant.
  public let suggestion: String?
  /// What to do about it.
  public let hint: String?

  init(_ origin: SettingSource, _ key: String?, _ reason: String, suggestion: String? = nil, hint: String? = nil) {
    self.origin = origin
    self.key = key
    self.reason = reason
    self.suggestion = suggestion
    self.hint = hint
  }
}

extension Fault: CustomStringConvertible {
  /// `file:line:col: key: reason (did you mean …)`, on one line, without the hint.
  public var description: String {
    let place = "\(origin)"
    let parts = [place.isEmpty ? nil : place, key, reason].compactMap(\.self)
    return (parts.joined(separator: ": ") + (suggestion.map { " (did you mean \($0))" } ?? "")).onOneLine
  }
}

extension String {
  /// The text without characters that steer a terminal or begin a line: what is quoted from a configuration may hold
  /// anything.
  var onOneLine: String { TerminalText.printable(self) }
}

/// Everything that is wrong in the configuration, in the order of the file; never empty.
public struct ConfigurationFaults: Error, Sendable, Hashable {
  public let faults: [Fault]
}

extension ConfigurationFaults: CustomStringConvertible {
  /// A line for each fault, `error: ` before it, and one line `hint: ` for each different hint behind them.
  public var description: String {
    var hints: [String] = []
    for hint in faults.compactMap(\.hint) where !hints.contains(hint) { hints.append(hint) }
    return (faults.map { "error: \($0)" } + hints.map { "hint: \($0)" }).joined(separator: "\n")
  }
}

/// Something that an operator should know at every start, and that stops nothing.
public struct Warning: Sendable, Hashable, CustomStringConvertible {
  public let origin: SettingSource
  public let key: String?
  public let text: String

  init(_ origin: SettingSource = .standard, _ key: String? = nil, _ text: String) {
    self.origin = origin
    self.key = key
    self.text = text
  }

  /// `file:line:col: key: text`, on one line.
  public var description: String {
    let place = "\(origin)"
    return [place.isEmpty ? nil : place, key, text].compactMap(\.self).joined(separator: ": ").onOneLine
  }
}
