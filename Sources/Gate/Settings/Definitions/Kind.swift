/// The reason why a text is not a valid value.
struct InvalidSetting: Error, Hashable {
  let reason: String
  var suggestion: String?

  init(_ reason: String, suggestion: String? = nil) {
    self.reason = reason
    self.suggestion = suggestion
  }

  /// Quotes `text` for an error message: on one line, with control characters escaped, at most 60 characters.
  static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.prefix(60).map { scalar in
      scalar.value < 0x20 || scalar.value == 0x7F ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
    }
    return "\"" + escaped.joined() + (text.unicodeScalars.count > 60 ? "…" : "") + "\""
  }
}

/// A kind of value: its form, and how its text is parsed.
///
/// Every configuration layer provides texts, so the file, the environment and the flags share one parser.
struct Kind<Value: Sendable>: Sendable {
  /// One word for documentation, for example `duration`.
  let name: String
  /// A description of the valid values, for example `500ms, 60s, 12h or off`.
  let form: String
  /// Whether the text is a path. Relative paths start from the folder of the layer that sets them.
  var isPath = false
  /// Returns the text with its secret masked; `nil` for kinds without secrets.
  var masked: (@Sendable (_ text: String) -> String)?
  /// The JSON Schema of the value.
  var schema = ValueSchema.text
  /// An example for documentation, if the key has neither an example nor a default.
  var example: String?
  /// Parses `text`.
  let read: @Sendable (_ text: String) throws(InvalidSetting) -> Value
}
