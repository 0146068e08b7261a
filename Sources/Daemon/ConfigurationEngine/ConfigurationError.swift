internal import ByteCoding
public import Commands

/// One fault in the configuration.
public struct ConfigurationError: Sendable, Hashable {
  /// The place of the faulty value.
  public let origin: SettingSource
  /// The key as in the file, for example `routes[0].upstream`, or the name of a variable; `nil` for a fault of the
  /// whole file.
  public let key: String?
  /// The description of the fault.
  public let reason: String
  /// The value that was probably meant.
  public let suggestion: String?
  /// What the operator can do about it.
  public let hint: String?

  public init(
    _ origin: SettingSource, _ key: String?, _ reason: String, suggestion: String? = nil, hint: String? = nil
  ) {
    self.origin = origin
    self.key = key
    self.reason = reason
    self.suggestion = suggestion
    self.hint = hint
  }
}

extension ConfigurationError: CustomStringConvertible {
  /// One line without the hint: `file:line:col: key: reason (did you mean …)`.
  public var description: String {
    let place = "\(origin)"
    let key = key.map { $0.unicodeScalars.count > 200 ? "\($0.unicodeScalars.prefix(200))…" : $0 }
    let parts = [place.isEmpty ? nil : place, key, reason].compactMap(\.self)
    return (parts.joined(separator: ": ") + (suggestion.map { " (did you mean \($0))" } ?? "")).onOneLine
  }
}

extension String {
  /// The text without control characters and line breaks, because quoted configuration values may contain anything.
  var onOneLine: String { TerminalText.printable(self) }
}

/// Every fault in the configuration, in the order of the file; never empty.
public struct ConfigurationErrors: Error, Sendable, Hashable {
  public let faults: [ConfigurationError]

  public init(faults: [ConfigurationError]) { self.faults = faults }
}

extension ConfigurationErrors: CustomStringConvertible {
  /// One error for each fault, followed by its hint.
  public var messages: [Message] { Message.hinted(faults.map { (.error($0.description), $0.hint) }) }

  /// The lines of `messages`.
  public var description: String { messages.map(\.line).joined(separator: "\n") }
}

/// A condition that an operator should know at every start, but that does not prevent the start.
public struct Warning: Sendable, Hashable, CustomStringConvertible {
  public let origin: SettingSource
  public let key: String?
  public let text: String

  public init(_ origin: SettingSource = .standard, _ key: String? = nil, _ text: String) {
    self.origin = origin
    self.key = key
    self.text = text
  }

  /// One line: `file:line:col: key: text`.
  public var description: String {
    let place = "\(origin)"
    return [place.isEmpty ? nil : place, key, text].compactMap(\.self).joined(separator: ": ").onOneLine
  }
}
