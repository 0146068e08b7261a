/// A setting: its path, the kind of its value, and its default.
struct Key<Value: Sendable>: Sendable {
  let kind: Kind<Value>
  let definition: KeyDefinition

  init(
    _ pattern: String, _ kind: Kind<Value>, default standard: String? = nil, isRequired: Bool = false,
    platform: GateSettings.Platform? = nil,
    credential: String? = nil, example: String? = nil, _ summary: String
  ) {
    self.kind = kind
    definition = KeyDefinition(
      pattern: pattern, kind: kind.name, form: kind.form, standard: standard, isRequired: isRequired,
      credential: credential, example: example ?? standard ?? kind.example, summary: summary, isPath: kind.isPath,
      holdsSecret: kind.masked != nil, platform: platform, schema: kind.schema,
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

/// A row of the settings table, without the type of its value.
public struct KeyDefinition: Sendable {
  /// The path of the key. `[]` stands for a list element: `routes[].upstream`.
  public let pattern: String
  /// The name of the kind of value, for example `duration`.
  public let kind: String
  /// A description of the valid values.
  public let form: String
  /// The default value as text; `nil` if there is none.
  public let standard: String?
  /// Whether a value is required. Keys of list elements are required in each element, or in each one of `platform`.
  public let isRequired: Bool
  /// The name of the file in `$CREDENTIALS_DIRECTORY` that is used if the key is not set.
  public let credential: String?
  /// An example value for documentation.
  public let example: String?
  /// A sentence that describes the effect of the key.
  public let summary: String
  let isPath: Bool
  /// Whether the value may be or contain a secret.
  let holdsSecret: Bool
  /// The platform of the list elements that may have the key; `nil` for all.
  let platform: GateSettings.Platform?
  /// The JSON Schema of the value.
  let schema: ValueSchema
  /// Returns the value with any secret masked, for display.
  let masked: @Sendable (_ text: String) -> String
  /// Returns why `text` is not a valid value, or `nil` if it is valid.
  let problem: @Sendable (_ text: String) -> InvalidSetting?

  /// The summary, and whether the key is required.
  public var meaning: String {
    guard let platform else { return isRequired ? "\(summary) Required." : summary }
    return "\(summary) \(isRequired ? "Required" : "Only") with `platform: \(platform.rawValue)`."
  }

  /// The meaning, followed by the valid values.
  var description: String { "\(meaning) \(form.prefix(1).uppercased())\(form.dropFirst())." }

  /// The last step of the path, without list brackets: `upstream`.
  var name: String { pattern.split(separator: ".").last.map { String($0.replacing("[]", with: "")) } ?? pattern }

  /// The environment variable that sets the key: `SALLYPORT_ROUTES__0__UPSTREAM` for the first element of a list.
  public var environmentVariable: String {
    EnvironmentName.variable(for: SettingPath(pattern: pattern, indices: []))
  }
}
