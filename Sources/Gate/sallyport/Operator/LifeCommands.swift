internal import ArgumentParser
internal import ByteCoding
internal import GateRuntime
internal import GateService
internal import Settings

struct ReloadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Reloads the configuration of a running gate, as SIGHUP does. Open sessions are not affected.",
    discussion: """
      If the new configuration is invalid, the errors are shown and the old one stays active. The gate needs an admin \
      server: admin.listen.

      Example:

        sallyport reload
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Print the answer as one line of JSON.")
  var json = false

  @Flag(help: "Do not ask for confirmation, which a gate that was found and not named needs on a terminal.")
  var yes = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.clientToChange("Reload", isConfirmed: yes).send(
        "POST", "/v1/reload", ReloadReply.self)
      if json {
        Console.print(JSONText.encoding(answer))
      } else {
        Console.print("reloaded")
        if !answer.needsRestart.isEmpty {
          Console.error("warning: changes of \(answer.needsRestart.joined(separator: ", ")) need a restart")
        }
      }
    } catch {
      throw error.told()
    }
  }
}

/// The answer to a drain request.
struct DrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain",
    abstract: "Shuts down a running gate, as SIGTERM does: it becomes unready, then closes every session with 1001.",
    discussion: """
      Returns immediately; the gate exits within shutdown.unready_delay plus shutdown.drain_timeout.

      Example:

        sallyport drain
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Print the answer as one line of JSON.")
  var json = false

  @Flag(help: "Do not ask for confirmation, which a gate that was found and not named needs on a terminal.")
  var yes = false

  func run() async throws {
    do throws(SallyportError) {
      let answer = try await configuration.clientToChange("Drain", isConfirmed: yes).send(
        "POST", "/v1/drain", DrainReply.self)
      Console.print(json ? JSONText.encoding(answer) : "draining")
    } catch {
      throw error.told()
    }
  }
}
