/// What a validator that knows types can tell of a value: the part of a kind's grammar that JSON Schema has words for.
///
/// It may let through what the kind refuses, since it knows neither files nor the other keys, and never the other way
/// round: an editor must not complain of what the gate takes.
struct ValueSchema: Sendable {
  /// The types of JSON. A pattern says something of texts alone, a range of numbers alone.
  var types = ["string"]
  /// A regular expression (ECMA-262) for texts.
  var pattern: String?
  /// The words that there are, if the list is closed.
  var words: [String] = []
  var range: ClosedRange<Int>?
  /// Characters of a text.
  var longest: Int?

  static let text = ValueSchema()

  /// A text that may also look like a number, as a team of digits alone.
  static func textOrNumber(_ pattern: String) -> ValueSchema {
    ValueSchema(types: ["string", "number"], pattern: pattern)
  }

  static func matching(_ pattern: String, longest: Int? = nil) -> ValueSchema {
    ValueSchema(pattern: pattern, longest: longest)
  }

  /// One of `words`; YAML reads `true` as a truth and `1.2` as a number, so those count too.
  static func oneOf(_ words: [String]) -> ValueSchema { ValueSchema(types: [], words: words) }

  /// A whole number, bare or in quotes, or one of `words`.
  static func integer(_ range: ClosedRange<Int>, or words: String...) -> ValueSchema {
    let alternatives = (words + ["[0-9]+"]).joined(separator: "|")
    return ValueSchema(types: ["integer", "string"], pattern: "^(\(alternatives))$", range: range)
  }
}

extension ValueSchema {
  /// The members of the schema of one value.
  var members: [(String, JSONNode)] {
    guard words.isEmpty else {
      let literals = words.filter { JSONNode.scalar($0).isLiteral }
      return [("enum", .list(words.map(JSONNode.text) + literals.map(JSONNode.scalar)))]
    }
    var members: [(String, JSONNode)] = [
      ("type", types.count == 1 ? .text(types[0]) : .list(types.map(JSONNode.text)))
    ]
    if let range {
      members.append(("minimum", .literal("\(range.lowerBound)")))
      members.append(("maximum", .literal("\(range.upperBound)")))
    }
    if let pattern { members.append(("pattern", .text(pattern))) } else { members.append(("minLength", .literal("1"))) }
    if let longest { members.append(("maxLength", .literal("\(longest)"))) }
    return members
  }

  /// `text`, a value of the kind, as the type that a person would write it in.
  func value(_ text: String) -> JSONNode {
    types.contains("integer") || ["true", "false"].contains(text) && words.contains(text) ? .scalar(text) : .text(text)
  }
}
