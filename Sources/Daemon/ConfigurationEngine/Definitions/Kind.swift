/// The reason why a text is not a valid value.
public struct InvalidSetting: Error, Hashable {
  public let reason: String
  /// The value that was probably meant. None is shown that contains a password.
  public let suggestion: String?

  public init(_ reason: String, suggestion: String? = nil) {
    self.reason = reason
    self.suggestion = suggestion.flatMap { Self.withoutPassword($0) == $0 ? $0 : nil }
  }

  /// Quotes `text` for an error message: on one line, without the password of a URL, with control characters escaped,
  /// at most 60 characters.
  public static func quoted(_ text: String) -> String {
    "\"" + shortened(text) + "\""
  }

  /// `quoted` without the quotes.
  public static func shortened(_ text: String) -> String {
    let text = withoutPassword(text)
    let escaped = text.unicodeScalars.prefix(60).map { scalar in
      scalar.value < 0x20 || scalar.value == 0x7F ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
    }
    return escaped.joined() + (text.unicodeScalars.count > 60 ? "…" : "")
  }

  /// `text` with `…` in place of what may be the password of a user in a URL: all from the first colon behind the
  /// scheme to the last `@`.
  private static func withoutPassword(_ text: String) -> String {
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    guard let end = text.lastIndex(of: "@"), start < end,
      let colon = text[start..<end].firstIndex(of: ":")
    else { return text }
    return text[...colon] + "…" + text[end...]
  }
}

/// A kind of value: its form, and how its text is parsed.
///
/// Every configuration layer provides texts, so the file, the environment and the flags share one parser.
public struct Kind<Value: Sendable>: Sendable {
  /// One word for documentation, for example `duration`.
  public let name: String
  /// A description of the valid values, for example `500ms, 60s, 12h or off`.
  public let form: String
  /// Whether the text is a path, or a URL, which stays as it is. Relative paths start from the folder of the layer
  /// that sets them.
  public var isPath: Bool
  /// Whether a file may have a list in place of the text: its elements, which contain no comma, are joined by commas.
  public var takesList = false
  /// Whether an empty text is a value.
  public var takesEmpty = false
  /// Returns the text with its secret masked; `nil` for kinds without secrets.
  public var masked: (@Sendable (_ text: String) -> String)?
  /// The JSON Schema of the value.
  public var schema: ValueSchema
  /// An example for documentation, if the key has neither an example nor a default.
  public var example: String?
  /// Parses `text`.
  public let read: @Sendable (_ text: String) throws(InvalidSetting) -> Value

  public init(
    name: String, form: String, isPath: Bool = false,
    masked: (@Sendable (_ text: String) -> String)? = nil, schema: ValueSchema = .text, example: String? = nil,
    read: @escaping @Sendable (_ text: String) throws(InvalidSetting) -> Value
  ) {
    self.name = name
    self.form = form
    self.isPath = isPath
    self.masked = masked
    self.schema = schema
    self.example = example
    self.read = read
  }
}
