internal import ArgumentParser
internal import Settings

/// Serves until it is told to stop.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serves with a configuration, until SIGTERM or SIGINT.",
    discussion: """
      Settings come from flags, then the environment (SALLYPORT_LISTEN__PORT=…), then a .env file in the working \
      directory, then the file, then defaults. Log lines (JSON) go to standard error.

      Example:

        sallyport run -c /etc/sallyport/sallyport.yaml
      """)

  @Option(name: [.short, .customLong("config")], help: "The configuration file (YAML).")
  var config: String?

  @Option(name: .customLong("set"), help: "A setting by its key, as listen.port=6201. May be repeated.")
  var settings: [String] = []

  func run() async throws {
    do throws(CommandFailure) {
      let settings = try Self.load(SettingsLoader(file: config, flags: try flags()))
      let house = try await GateHouse.open(settings)
      await house.serve()
    } catch {
      throw error.told()
    }
  }

  private func flags() throws(CommandFailure) -> [FlagSetting] {
    var flags: [FlagSetting] = []
    for setting in settings {
      let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        throw CommandFailure(
          .configuration, error: "--set \(setting): no value", hint: "write --set KEY=VALUE, as --set listen.port=6201")
      }
      flags.append(FlagSetting(flag: "--set", key: String(parts[0]), text: String(parts[1])))
    }
    return flags
  }

  static func load(_ loader: SettingsLoader) throws(CommandFailure) -> GateSettings {
    do throws(ConfigurationFaults) {
      return try loader.load()
    } catch {
      throw CommandFailure(.configuration, lines: error.description)
    }
  }
}
