internal import ArgumentParser
internal import ByteCoding
internal import GateRuntime
internal import GateService
internal import Settings

struct UpgradeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade",
    abstract: "Upgrades a running gate without refusing connections, as SIGUSR2 does.",
    discussion: """
      Install the new executable in the place of the old one first. The gate starts it with its own arguments; the new \
      process reads the configuration and inherits the listening sockets. Once the new process serves, the old process \
      accepts no connections. Its sessions continue for at most shutdown.linger and are then closed with 1012. If the \
      new process fails to start, nothing changes, the reason is shown, and the exit status is 69. The gate needs an \
      admin server: admin.listen.

      Example:

        sallyport upgrade
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Print the answer as one line of JSON.")
  var json = false

  @Flag(help: "Do not ask for confirmation, which a gate that was found and not named needs on a terminal.")
  var yes = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.clientToChange("Upgrade", isConfirmed: yes).send(
        "POST", "/v1/upgrade", UpgradeReply.self)
      Console.print(json ? JSONText.encoding(answer) : "upgraded: process \(answer.process) serves")
    } catch {
      throw error.told()
    }
  }
}
