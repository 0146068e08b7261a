/// A setting: where it stands, what it holds, what it is without being given.
struct Key<Value: Sendable>: Sendable {
  let kind: Kind<Value>
  let definition: KeyDefinition

  init(
    _ pattern: String, _ kind: Kind<Value>, default standard: String? = nil, isRequired: Bool = false,
    credential: String? = nil, example: String? = nil, _ summary: String
  ) {
    self.kind = kind
    definition = KeyDefinition(
      pattern: pattern, kind: kind.name, form: kind.form, standard: standard, isRequired: isRequired,
      credential: credential, example: example ?? standard ?? kind.example, summary: summary, isPath: kind.isPath,
      isAvailable: true, holdsSecret: kind.masked != nil, schema: kind.schema, masked: kind.masked ?? { $0 }
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

/// A row of the table of settings, without the type of its value.
public struct KeyDefinition: Sendable {
  /// The path of the key, `[]` standing for the elements of a list: `routes[].upstream`.
  public let pattern: String
  /// The kind of its value: `duration`.
  public let kind: String
  /// How a value is written.
  public let form: String
  /// The value of the key if none is configured, as text; `nil` if there is no default.
  public let standard: String?
  /// Whether there has to be a value; elements of lists have one each.
  public let isRequired: Bool
  /// The name of the file in `$CREDENTIALS_DIRECTORY` that is taken where no file is named.
  public let credential: String?
  /// A value, for documentation.
  public let example: String?
  /// What the key does, in a sentence.
  public let summary: String
  let isPath: Bool
  /// Whether this version has it. A key that a later version brings is refused, never ignored.
  public let isAvailable: Bool
  /// Whether the value may be, or contain, what must not be shown.
  let holdsSecret: Bool
  /// What a validator that knows types can tell of the value.
  let schema: ValueSchema
  /// A value as it may be shown: without the secret that it may hold.
  let masked: @Sendable (_ text: String) -> String
  /// Why `text` cannot be the value; `nil` if it can.
  let misfit: @Sendable (_ text: String) -> InvalidSetting?

  /// What the key does, and whether it has to be given.
  public var meaning: String { isRequired ? "\(summary) Required." : summary }

  /// The last step of the path, without the brackets of a list: `upstream`.
  var name: String { pattern.split(separator: ".").last.map { String($0.replacing("[]", with: "")) } ?? pattern }

  /// The environment variable that sets the key: `SALLYPORT_ROUTES__0__UPSTREAM` for the first element of a list.
  public var environmentVariable: String {
    EnvironmentName.variable(for: SettingPath(pattern: pattern, indices: []))
  }

  /// A key that this version does not have yet.
  static func later(_ pattern: String) -> KeyDefinition {
    KeyDefinition(
      pattern: pattern, kind: "", form: "", standard: nil, isRequired: false, credential: nil, example: nil,
      summary: "",
      isPath: false, isAvailable: false, holdsSecret: false, schema: .text, masked: { $0 }, misfit: { _ in nil })
  }
}
