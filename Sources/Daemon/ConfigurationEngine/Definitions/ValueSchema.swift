/// The part of a kind's grammar that JSON Schema can express.
///
/// The schema may accept values that the kind rejects, because it knows neither files nor other keys. It never
/// rejects a value that the program accepts.
public struct ValueSchema: Sendable {
  /// The JSON types. A pattern applies only to strings, a range only to numbers.
  public var types = ["string"]
  /// A regular expression (ECMA-262) for texts.
  public var pattern: String?
  /// The allowed words, if the list is closed.
  public var words: [String] = []
  public var range: ClosedRange<Int>?
  /// The maximum length in characters.
  public var longest: Int?
  /// A regular expression for each element of a list in place of the text (`Kind.takesList`).
  public var elementPattern: String?

  public init(
    types: [String] = ["string"], pattern: String? = nil, words: [String] = [], range: ClosedRange<Int>? = nil,
    longest: Int? = nil
  ) {
    self.types = types
    self.pattern = pattern
    self.words = words
    self.range = range
    self.longest = longest
  }

  public static let text = ValueSchema()

  /// Any text. What YAML reads as a number or a boolean counts too: the program sees the text.
  public static let anyText = ValueSchema(types: ["string", "number", "boolean"])

  /// A text that may look like a number, for example a team ID of only digits.
  public static func textOrNumber(_ pattern: String) -> ValueSchema {
    ValueSchema(types: ["string", "number"], pattern: pattern)
  }

  /// Texts that match `element`, separated by commas.
  public static func list(of element: String) -> ValueSchema {
    var schema = ValueSchema(pattern: "^ *(\(element)) *(, *(\(element)) *)*$")
    schema.elementPattern = "^(\(element))$"
    return schema
  }

  var element: ValueSchema? { elementPattern.map { .matching($0) } }

  public static func matching(_ pattern: String, longest: Int? = nil) -> ValueSchema {
    ValueSchema(pattern: pattern, longest: longest)
  }

  /// A text that matches `pattern`, or `off`, which readers of YAML 1.1 pass as a truth value.
  public static func offOr(_ pattern: String) -> ValueSchema {
    ValueSchema(types: ["string", "boolean"], pattern: "^(off|\(pattern))$")
  }

  /// One of `words`. YAML reads `true` as a boolean and `1.2` as a number, so these count too.
  public static func oneOf(_ words: [String]) -> ValueSchema { ValueSchema(types: [], words: words) }

  /// An integer, bare or in quotes, or one of `words`.
  public static func integer(_ range: ClosedRange<Int>, or words: String...) -> ValueSchema {
    let alternatives = (words + ["[0-9]+"]).joined(separator: "|")
    let types = ["integer", "string"] + (words.contains("off") ? ["boolean"] : [])
    return ValueSchema(types: types, pattern: "^(\(alternatives))$", range: range)
  }
}

extension ValueSchema {
  /// The members of the JSON Schema of one value.
  var members: [(String, JSONNode)] {
    guard words.isEmpty else {
      let literals = words.filter { JSONNode.scalar($0).isLiteral }
      // Readers of YAML 1.1 pass `on` and `off` as truth values.
      let truths = ["on": "true", "off": "false"].filter { words.contains($0.key) }.values.sorted(by: >)
      return [("enum", .list(words.map(JSONNode.text) + (literals + truths).map(JSONNode.scalar)))]
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

  /// Converts a valid `text` to the JSON type in which people would write it.
  func value(_ text: String) -> JSONNode {
    types.contains("integer") || ["true", "false"].contains(text) && words.contains(text) ? .scalar(text) : .text(text)
  }
}
