/// A setting: its path, the kind of its value, and its default.
public struct Key<Value: Sendable>: Sendable {
  public let kind: Kind<Value>
  public let definition: KeyDefinition

  /// - Parameters:
  ///   - pattern: The path; `[]` stands for a list element: `routes[].upstream`, and `*` for a name that the file
  ///     chooses: `providers.*.issuer`. Only the file sets such a key, no variable and no flag.
  ///   - standard: The default value as text.
  ///   - condition: The list elements that may have the key; `nil` for all.
  ///   - credential: The name of the file in `$CREDENTIALS_DIRECTORY` that is used if the key is not set.
  ///   - example: An example value, if the key has no default, or the kind's example would mislead.
  public init(
    _ pattern: String, _ kind: Kind<Value>, default standard: String? = nil, isRequired: Bool = false,
    only condition: ElementCondition? = nil, credential: String? = nil, example: String? = nil, _ summary: String
  ) {
    self.kind = kind
    definition = KeyDefinition(
      pattern: pattern, kind: kind.name, form: kind.form, standard: standard, isRequired: isRequired,
      credential: credential, example: example ?? standard ?? kind.example, summary: summary,
      isPath: kind.isPath, takesList: kind.takesList, takesEmpty: kind.takesEmpty, holdsSecret: kind.masked != nil,
      condition: condition,
      schema: kind.schema,
      masked: kind.masked ?? { $0 }
    ) { text in
      do throws(InvalidSetting) {
        _ = try kind.read(text)
        return nil
      } catch {
        return error
      }
    }
  }
}

extension [KeyDefinition] {
  /// The rows of these settings, in this order.
  public init<each Value: Sendable>(_ keys: repeat Key<each Value>) {
    self = []
    for key in repeat each keys { append(key.definition) }
  }
}

/// Some of a list's elements: those whose member has a value.
public struct ElementCondition: Sendable, Hashable {
  /// The name of the member that decides: `platform`.
  public let member: String
  public let value: String
  /// The value of elements without the member.
  public let standard: String

  public init(_ member: String, is value: String, default standard: String) {
    self.member = member
    self.value = value
    self.standard = standard
  }
}

/// A row of the settings table, without the type of its value.
public struct KeyDefinition: Sendable {
  /// The path of the key. `[]` stands for a list element: `routes[].upstream`, `*` for a name: `providers.*.issuer`.
  public let pattern: String
  /// The name of the kind of value, for example `duration`.
  public let kind: String
  /// A description of the valid values.
  public let form: String
  /// The default value as text; `nil` if there is none.
  public let standard: String?
  /// Whether a value is required. Keys of list elements are required in each element, or in each one of `condition`.
  public let isRequired: Bool
  /// The name of the file in `$CREDENTIALS_DIRECTORY` that is used if the key is not set.
  public let credential: String?
  /// An example value for documentation.
  public let example: String?
  /// A sentence that describes the effect of the key.
  public let summary: String
  let isPath: Bool
  /// Whether a file may have a list in place of the text.
  let takesList: Bool
  /// Whether an empty text is a value.
  let takesEmpty: Bool
  /// Whether the value may be or contain a secret.
  public let holdsSecret: Bool
  /// The list elements that may have the key; `nil` for all.
  public let condition: ElementCondition?
  /// The JSON Schema of the value.
  let schema: ValueSchema
  /// Returns the value with any secret masked, for display.
  let masked: @Sendable (_ text: String) -> String
  /// Returns why `text` is not a valid value, or `nil` if it is valid.
  public let problem: @Sendable (_ text: String) -> InvalidSetting?

  /// The summary, and whether the key is required.
  public var meaning: String {
    guard let condition else { return isRequired ? "\(summary) Required." : summary }
    return "\(summary) \(isRequired ? "Required" : "Only") with `\(condition.member): \(condition.value)`."
  }

  /// The meaning, followed by the valid values.
  var description: String { "\(meaning) \(form.prefix(1).uppercased())\(form.dropFirst())." }

  /// The last step of the path, without list brackets: `upstream`.
  public var name: String { pattern.split(separator: ".").last.map { String($0.replacing("[]", with: "")) } ?? pattern }

  /// Returns a valid `text` as it is used: a relative path starts from `folder`.
  public func placed(_ text: String, in folder: String) -> String {
    isPath ? FilePath.absolute(text, in: folder) : text
  }
}
