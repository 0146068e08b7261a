internal import ArgumentParser
internal import Commands
internal import ConsoleServing
internal import GateRuntime
internal import GateService
internal import Transport

/// Serves the console of a running gate to a browser on this machine.
///
/// The gate logs each act with the user of this process.
struct ConsoleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Shows a running gate in the browser: refusals, keys, sessions, upstreams, certificates, settings.",
    discussion: """
      Serves pages on a loopback port of this machine, and asks the gate by its admin server. Prints an address, which \
      works once and within 10 minutes; on a terminal it also starts the browser ($BROWSER, or xdg-open on a desktop), \
      but not as another user by sudo. The console ends with SIGINT or SIGTERM, at sign-out, 12 hours after the \
      sign-in, or after 10 minutes without one.

      Roles: view changes nothing; support revokes and restores keys and closes sessions; admin also drains and resumes \
      upstreams. The gate logs every change with the user who runs this command.

      Example: a gate on another machine, whose console is forwarded over SSH; both ports must be the same

        ssh -t -L 7000:127.0.0.1:7000 gate.example.com sallyport console --port 7000 --print

      With --serve it is a service for people on other machines instead: over TLS at admin.console.listen, with a \
      sign-in by client certificates or OpenID Connect, and the roles of the configuration.

        sallyport console --serve -c /etc/sallyport/sallyport.yaml
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var console: LoopbackConsole

  func run() async throws {
    guard !console.serve else {
      let served = ServedConsole(
        file: configuration.servedFile, options: configuration.shownOptions, variables: configuration.shownVariables)
      return try await served.run()
    }
    let client = try await configuration.client()
    // Whether this gate answers, and whether it knows what the console asks.
    _ = try await client.send("GET", "/v1/refusals?limit=1", RefusalListing.self)
    let options = configuration.shownOptions
    let link = ConsoleLink(
      program: "sallyport", service: "gate", variables: configuration.shownVariables, options: { _ in options }
    ) { method, target, _ throws(ConsoleFault) in
      do throws(Failure) {
        let answer = try await client.ask(method, target)
        return ConsoleLink.Reply(status: answer.status, body: answer.body)
      } catch {
        throw ConsoleFault(502, error.message, hint: "The console keeps asking. Is the gate running?")
      }
    }
    try await console.run(GateConsole(link))
  }
}
