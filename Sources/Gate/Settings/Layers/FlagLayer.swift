/// A setting from the command line.
public struct FlagSetting: Sendable, Hashable {
  /// The flag with its dashes, for error messages: `--port`.
  public let flag: String
  /// The path of the key that the flag sets: `listen.port`, `routes[0].upstream`.
  public let key: String
  public let text: String

  public init(flag: String, key: String, text: String) {
    self.flag = flag
    self.key = key
    self.text = text
  }
}

enum FlagLayer {
  /// The values of `flags`. If two flags set the same key, the later one wins.
  static func entries(of flags: [FlagSetting], in workingDirectory: String) -> Entries {
    var entries = Entries()
    for flag in flags {
      let origin = SettingSource.flag(flag.flag)
      guard let path = SettingPath(text: flag.key) else {
        entries.refuse(
          ConfigurationError(origin, flag.key, "not a valid key; expected a path such as routes[0].upstream"))
        continue
      }
      switch SettingsTable.shape(of: path) {
      case .value(let key): entries.take(flag.text, for: path, key, from: origin, in: workingDirectory)
      case .list: entries.refuse(ConfigurationError(origin, path.text, "is a list", suggestion: path[0].text))
      case .section: entries.refuse(ConfigurationError(origin, path.text, "is a section: set one of its keys"))
      case .unknown:
        entries.refuse(
          ConfigurationError(origin, path.text, "unknown key", suggestion: SettingsTable.suggestion(for: path)))
      }
    }
    return entries
  }
}
