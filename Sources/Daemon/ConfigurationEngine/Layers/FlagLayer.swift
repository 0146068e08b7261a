/// A setting from the command line.
public struct FlagSetting: Sendable, Hashable {
  /// The flag with its dashes, for error messages: `--port`.
  public let flag: String
  /// The path of the key that the flag sets: `listen.port`, `routes[0].upstream`.
  public let key: String
  /// The value.
  public let text: String

  public init(flag: String, key: String, text: String) {
    self.flag = flag
    self.key = key
    self.text = text
  }
}

extension FlagSetting {
  /// Creates the setting of an option; `nil` if the option was not given.
  public init?(_ flag: String, _ key: String, _ text: String?) {
    guard let text else { return nil }
    self.init(flag: flag, key: key, text: text)
  }
}

extension Entries {
  /// Takes the values of `flags`. If two flags set the same key, the later one wins.
  public init(_ flags: [FlagSetting], in workingDirectory: String, _ table: SettingsTable) {
    self.init()
    for flag in flags {
      let origin = SettingSource.flag(flag.flag)
      guard let path = SettingPath(text: flag.key) else {
        refuse(
          ConfigurationError(origin, flag.key, "not a valid key; expected a path such as routes[0].upstream"))
        continue
      }
      switch table.shape(of: path) {
      case .value(let key): take(flag.text, for: path, key, from: origin, in: workingDirectory)
      case .list: refuse(ConfigurationError(origin, path.text, "is a list", suggestion: path[0].text))
      case .section: refuse(ConfigurationError(origin, path.text, "is a section: set one of its keys"))
      case .unknown:
        refuse(
          ConfigurationError(origin, path.text, "unknown key", suggestion: table.suggestion(for: path)))
      }
    }
  }
}
