/// A setting: where it stands, what it holds, what it is without being given.
struct Key<Value: Sendable>: Sendable {
  let kind: Kind<Value>
  let definition: KeyDefinition

  init(
    _ pattern: String, _ kind: Kind<Value>, default standard: String? = nil, credential: String? = nil,
    _ summary: String
  ) {
    self.kind = kind
    definition = KeyDefinition(
      pattern: pattern, kind: kind.name, form: kind.form, standard: standard, credential: credential,
      summary: summary, isPath: kind.isPath, isAvailable: true, masked: kind.masked
    ) { text in
      do throws(Misfit) {
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
  /// The value of the key where nobody gives one, as text; `nil` if there is none.
  public let standard: String?
  /// The name of the file in `$CREDENTIALS_DIRECTORY` that is taken where no file is named.
  public let credential: String?
  /// What the key does, in a sentence.
  public let summary: String
  let isPath: Bool
  /// Whether this version has it. A key that a later version brings is refused, never ignored.
  public let isAvailable: Bool
  /// A value as it may be shown: without the secret that it may hold.
  let masked: @Sendable (_ text: String) -> String
  /// Why `text` cannot be the value; `nil` if it can.
  let misfit: @Sendable (_ text: String) -> Misfit?

  /// The environment variable that sets the key: `SALLYPORT_ROUTES__0__UPSTREAM` for the first element of a list.
  public var environmentVariable: String {
    EnvironmentName.variable(for: SettingPath(pattern: pattern, indices: []))
  }

  /// A key that this version does not have yet.
  static func later(_ pattern: String) -> KeyDefinition {
    KeyDefinition(
      pattern: pattern, kind: "", form: "", standard: nil, credential: nil, summary: "", isPath: false,
      isAvailable: false, masked: { $0 }, misfit: { _ in nil })
  }
}
