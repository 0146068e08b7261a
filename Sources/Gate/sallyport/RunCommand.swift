internal import ArgumentParser
internal import GateRuntime
internal import Settings

/// Serves until it is told to stop.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serves with a configuration, until SIGTERM or SIGINT.",
    discussion: """
      Settings come from flags, then the environment (SALLYPORT_LISTEN__PORT=…), then a .env file in the working \
      directory, then the file, then defaults. Log lines go to standard error: text on a terminal, JSON elsewhere.

      Example:

        sallyport run -c /etc/sallyport/sallyport.yaml
      """)

  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Write log lines as JSON, on a terminal as well: log.format=json.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let form = json ? [FlagSetting(flag: "--json", key: "log.format", text: "json")] : []
      let server = try await GateServer.open(try options.loader(with: form))
      await server.serve()
    } catch {
      throw error.told()
    }
  }
}
