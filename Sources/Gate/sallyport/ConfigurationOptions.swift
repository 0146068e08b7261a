internal import ArgumentParser
internal import GateRuntime
internal import Settings

/// Where a command takes its configuration from.
struct ConfigurationOptions: ParsableArguments {
  @Option(name: [.short, .customLong("config")], help: "The configuration file (YAML).")
  var config: String?

  @Option(name: .customLong("set"), help: "A setting by its key, as listen.port=6201. May be repeated.")
  var settings: [String] = []

  /// - Parameter others: settings of further flags.
  func loader(with others: [FlagSetting] = []) throws(SallyportError) -> SettingsLoader {
    var flags = others
    for setting in settings {
      let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        // A value that is not set apart from its key may be a secret.
        let key = setting.prefix { $0.isLetter || $0.isNumber || "._[]-".contains($0) }
        throw SallyportError(
          .configuration, error: "--set \(key)\(key.endIndex == setting.endIndex ? "" : "…"): no value",
          hint: "write --set KEY=VALUE, as --set listen.port=6201")
      }
      flags.append(FlagSetting(flag: "--set", key: String(parts[0]), text: String(parts[1])))
    }
    return SettingsLoader(file: config, flags: flags)
  }
}
