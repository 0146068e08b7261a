internal import ArgumentParser
internal import GateRuntime
internal import GateService
internal import Settings

/// What an upgrade is answered with.
private struct Upgraded: Codable {
  let upgraded: Bool
  let process: Int32
}

struct UpgradeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade",
    abstract:
      "Makes a running gate start its program again and hand over to it, as SIGUSR2 does; no client is refused.",
    discussion: """
      Put the new program in the place of the old one first. It is started with the arguments of the old one, reads the \
      configuration again, and inherits the listening sockets. Once it serves, the old process accepts no more clients; its \
      sessions go on until they end, for shutdown.linger at most, and are then closed with 1012. A program that does not \
      come up changes nothing: its reason is told, and the exit status is 69. The gate needs an admin server: \
      admin.listen.

      Example:

        sallyport upgrade -c /etc/sallyport/sallyport.yaml
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Write the answer as one line of JSON.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.client().send("POST", "/v1/upgrade", Upgraded.self)
      Console.print(json ? AdminJSON.text(of: answer) : "upgraded: process \(answer.process) serves")
    } catch {
      throw error.told()
    }
  }
}
