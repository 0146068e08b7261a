public import ByteCoding
public import Logging

/// Writes each log event as a line for a person: time of day (UTC), level, message, then `name=value`.
///
/// Control characters are escaped: text from clients must not steer a terminal or look like another line.
public struct TextLineHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  public var metadataProvider: Logger.MetadataProvider?
  public var logLevel: Logger.Level = .info

  private let sink: LineSink
  private let isColored: Bool
  private let now: @Sendable () -> Timestamp

  /// - Parameter isColored: whether levels have colors and names are dim (ECMA-48).
  public init(sink: LineSink, isColored: Bool, now: @escaping @Sendable () -> Timestamp = { .now() }) {
    self.sink = sink
    self.isColored = isColored
    self.now = now
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    let line = TextLine(
      time: now(), level: event.level, message: "\(event.message)",
      metadata: event.metadata(over: metadata, metadataProvider))
    sink.write(line.text(isColored: isColored))
  }
}

/// One log event as text.
struct TextLine {
  let time: Timestamp
  let level: Logger.Level
  let message: String
  let metadata: Logger.Metadata

  /// The line, without a line end and without one inside it.
  func text(isColored: Bool) -> String {
    // In RFC 3339 with milliseconds the time of day begins after the 11th character.
    var line = "\(Timestamp(milliseconds: time.milliseconds).description.dropFirst(11)) "
    let word = level.rawValue.uppercased()
    line += isColored ? "\u{1B}[\(color)m\(word)\u{1B}[0m" : word
    line += String(repeating: " ", count: max(1, 9 - word.count)) + Self.escaped(message)
    for (name, value) in fields {
      line += isColored ? " \u{1B}[2m\(Self.escaped(name))=\u{1B}[0m" : " \(Self.escaped(name))="
      line += Self.value(value)
    }
    return line
  }

  private var fields: [(name: String, text: String)] {
    metadata.sorted { $0.key < $1.key }.flatMap { name, value in
      if case .stringConvertible(let fields as LogFields) = value { return fields.texts }
      return [(name, "\(value)")]
    }
  }

  /// Of the level, as a parameter of ECMA-48's SGR.
  private var color: String {
    switch level {
    case .trace, .debug: "2"
    case .info: "32"
    case .notice: "36"
    case .warning: "33"
    case .error, .critical: "1;31"
    }
  }

  /// In quotes unless it is one word.
  private static func value(_ text: String) -> String {
    // Scalars and not characters: to compare characters takes time with the square of the number of combining marks in
    // a row, and a quotation mark before such a mark is another character.
    let isWord =
      !text.isEmpty && !text.unicodeScalars.contains { $0.properties.isWhitespace || $0 == "\"" || $0 == "=" }
    return isWord ? escaped(text) : "\"" + escaped(text, isQuoted: true) + "\""
  }

  private static func escaped(_ text: String, isQuoted: Bool = false) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      if isQuoted, scalar == "\"" {
        escaped += "\\\""
      } else if TerminalText.isUnsafe(scalar) {
        escaped += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
