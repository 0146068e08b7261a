internal import ByteCoding

/// A line for a person on standard error.
public enum Message: Sendable, Hashable {
  /// What is wrong.
  case error(String)
  /// What works, and should be known.
  case warning(String)
  /// What to do.
  case hint(String)

  /// The messages with their hints. A hint follows its message, or the last of several messages in a row that share it.
  public static func hinted(_ messages: [(message: Message, hint: String?)]) -> [Message] {
    messages.indices.flatMap { index -> [Message] in
      let (message, hint) = messages[index]
      let isShared = index + 1 < messages.count && messages[index + 1].hint == hint
      guard let hint, !isShared else { return [message] }
      return [message, .hint(hint)]
    }
  }

  /// The line: the mark, a colon and the text. The text may come from servers and files.
  public var line: String { "\(mark): \(text)" }

  /// The same message with the text that `change` returns for its own.
  public func replacingText(_ change: (String) -> String) -> Message {
    switch self {
    case .error(let text): .error(change(text))
    case .warning(let text): .warning(change(text))
    case .hint(let text): .hint(change(text))
    }
  }

  /// The message with U+FFFD for each character that could steer a terminal. Errors and warnings become one line; a hint
  /// may have several.
  var printable: Message {
    switch self {
    case .error(let text): .error(TerminalText.printable(Self.onOneLine(text)))
    case .warning(let text): .warning(TerminalText.printable(Self.onOneLine(text)))
    case .hint(let text): .hint(TerminalText.printableLines(text))
    }
  }

  /// The line as a terminal shows it, with the mark in a color of ECMA-48's SGR if it shows colors.
  func shown(inColor: Bool) -> String { inColor ? "\u{1B}[\(color)m\(mark):\u{1B}[0m \(text)" : line }

  private var mark: String {
    switch self {
    case .error: "error"
    case .warning: "warning"
    case .hint: "hint"
    }
  }

  private var color: String {
    switch self {
    case .error: "1;31"
    case .warning: "33"
    case .hint: "36"
    }
  }

  private var text: String {
    switch self {
    case .error(let text), .warning(let text), .hint(let text): text
    }
  }

  private static func onOneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).joined(separator: " ")
  }
}
