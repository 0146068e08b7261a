internal import ArgumentParser
internal import Commands
internal import GateService
internal import Glibc

/// The options of a command that changes the state of a running gate.
struct LifeOptions: ParsableArguments {
  @OptionGroup var configuration: ConfigurationOption

  @Flag(help: "Print the answer as one line of JSON.")
  var json = false

  @Flag(help: "Do not ask for confirmation, which a gate that was found and not named needs on a terminal.")
  var yes = false

  /// Sends a request to the gate and prints the answer, with `--json` as one line of JSON.
  ///
  /// - Parameters:
  ///   - act: What the command does to the gate, as in `Drain`, for the question whether it should.
  ///   - text: The answer in words.
  func ask<Answer: Codable>(
    _ act: String, _ target: String, _ type: Answer.Type, text: (Answer) -> String
  ) async throws(Failure) -> Answer {
    let answer = try await configuration.clientToChange(act, isConfirmed: yes).send("POST", target, type)
    if json { JSONOutput.print(answer) } else { Console.print(text(answer)) }
    return answer
  }
}

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

  @OptionGroup var options: LifeOptions
  @OptionGroup var signal: SignalOption

  func run() async throws {
    guard try options.configuration.namesAdminServer(or: signal) else {
      return try signal.send(SIGHUP, to: "sallyport")
    }
    let answer = try await options.ask("Reload", "/v1/reload", ReloadReply.self) { _ in "reloaded" }
    if !options.json, !answer.needsRestart.isEmpty {
      Console.tell(.warning("changes of \(answer.needsRestart.joined(separator: ", ")) need a restart"))
    }
  }
}

struct DrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain",
    abstract: "Shuts down a running gate, as SIGTERM does: it becomes unready, then closes every session with 1001.",
    discussion: """
      Returns immediately; the gate exits within shutdown.unready_delay plus shutdown.drain_timeout.

      Example:

        sallyport drain
      """)

  @OptionGroup var options: LifeOptions

  func run() async throws {
    _ = try await options.ask("Drain", "/v1/drain", DrainReply.self) { _ in "draining" }
  }
}

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

  @OptionGroup var options: LifeOptions
  @OptionGroup var signal: SignalOption

  func run() async throws {
    guard try options.configuration.namesAdminServer(or: signal) else {
      return try signal.send(SIGUSR2, to: "sallyport")
    }
    _ = try await options.ask("Upgrade", "/v1/upgrade", UpgradeReply.self) { "upgraded: process \($0.process) serves" }
  }
}
