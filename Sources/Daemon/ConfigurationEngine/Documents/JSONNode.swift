internal import ByteCoding

/// A JSON document with ordered members.
indirect enum JSONNode: Sendable {
  /// A number or a boolean in JSON form.
  case literal(String)
  case text(String)
  case list([JSONNode])
  case object([(String, JSONNode)])

  /// Returns `text` as a number or a boolean if it has that form, otherwise as a string.
  static func scalar(_ text: String) -> JSONNode {
    let isTruth = ["true", "false"].contains(text)
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    let isNumber = parts.count <= 2 && parts.allSatisfy { Digits.value(of: $0) != nil } && !text.hasPrefix("0")
    return isTruth || isNumber || text == "0" ? .literal(text) : .text(text)
  }

  var isLiteral: Bool {
    if case .literal = self { true } else { false }
  }

  /// The document with an indentation of two columns per level. Objects span several lines.
  func written(indentation: String = "") -> String {
    switch self {
    case .literal(let text): return text
    case .text(let text): return JSONText.quote(text)
    case .list(let elements):
      return "[" + elements.map { $0.written(indentation: indentation) }.joined(separator: ", ") + "]"
    case .object(let members):
      guard !members.isEmpty else { return "{}" }
      let deeper = indentation + "  "
      let lines = members.map { "\(deeper)\(JSONText.quote($0.0)): \($0.1.written(indentation: deeper))" }
      return "{\n" + lines.joined(separator: ",\n") + "\n\(indentation)}"
    }
  }
}
