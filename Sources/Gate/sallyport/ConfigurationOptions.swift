internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import FoundationEssentials
internal import GateRuntime
internal import Settings

/// The options that select a command's configuration.
struct ConfigurationOptions: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: "The configuration file (YAML; default: SALLYPORT_CONFIG, then /etc/sallyport/sallyport.yaml if it exists).")
  var config: String?

  @Option(name: .customLong("set"), help: "A setting as KEY=VALUE, for example listen.port=6201. May be repeated.")
  var settings: [String] = []

  /// - Parameter others: settings from the command's other flags.
  func loader(with others: [FlagSetting] = []) throws(Failure) -> SettingsLoader {
    var flags = others
    for setting in settings {
      let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        // Without `=` the text may be a secret, so only a leading part that looks like a key is shown.
        let key = setting.prefix { $0.isLetter || $0.isNumber || "._[]-".contains($0) }
        throw Failure(
          .configuration, "--set \(key)\(key.endIndex == setting.endIndex ? "" : "…"): no value",
          hint: "write --set KEY=VALUE, for example --set listen.port=6201")
      }
      flags.append(FlagSetting(flag: "--set", key: String(parts[0]), text: String(parts[1])))
    }
    return SettingsLoader(file: config ?? ConfigurationSearch.ofProcess.file, flags: flags)
  }
}

extension ConfigurationSearch {
  /// The search of a command, with the environment of this process.
  static var ofProcess: ConfigurationSearch { ConfigurationSearch(environment: ProcessInfo.processInfo.environment) }
}
