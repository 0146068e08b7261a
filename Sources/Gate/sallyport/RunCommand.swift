internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import GateRuntime
internal import Settings

/// Runs the gate until it is stopped.
struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Runs the gate until SIGTERM or SIGINT.",
    discussion: """
      Settings come from flags, the environment (SALLYPORT_LISTEN__PORT=…), a .env file in the working directory, the \
      file, and defaults, in this order. Log lines go to standard error: as text on a terminal, as JSON otherwise.

      The gate's own requests (ACME, status list, telemetry) use HTTPS_PROXY, http_proxy, ALL_PROXY and NO_PROXY.

      Example:

        sallyport run -c gate.yaml
      """)

  @OptionGroup var options: ConfigurationOptions

  @Flag(help: "Write log lines as JSON, also on a terminal (log.format=json).")
  var json = false

  func run() async throws {
    let form = json ? [FlagSetting(flag: "--json", key: "log.format", text: "json")] : []
    let server = try await GateServer.open(try options.loader(with: form))
    await server.serve()
  }
}
