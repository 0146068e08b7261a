/// Why a text is not a value of its kind.
struct InvalidSetting: Error, Hashable {
  let reason: String
  var suggestion: String?

  init(_ reason: String, suggestion: String? = nil) {
    self.reason = reason
    self.suggestion = suggestion
  }

  /// `text` as a reason may quote it: on one line and short, whatever it holds.
  static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.prefix(60).map { scalar in
      scalar.value < 0x20 || scalar.value == 0x7F ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
    }
    return "\"" + escaped.joined() + (text.unicodeScalars.count > 60 ? "…" : "") + "\""
  }
}

/// A kind of value: how it is written, and how the text is read.
///
/// Every layer gives texts, so one reading serves the file, the environment and the flags.
struct Kind<Value: Sendable>: Sendable {
  /// One word for documentation: `duration`.
  let name: String
  /// How a person writes it: `500ms, 60s, 12h or off`.
  let form: String
  /// Whether the text is a path, to be taken from the folder of what names it.
  var isPath = false
  /// The text as it may be shown; `nil` for kinds that hold no secret.
  var masked: (@Sendable (_ text: String) -> String)?
  /// What a validator that knows types can tell of it.
  var schema = ValueSchema.text
  /// A value, for documentation, where the key has neither an example of its own nor a default.
  var example: String?
  /// The value that `text` stands for.
  let read: @Sendable (_ text: String) throws(InvalidSetting) -> Value
}
