public import ArgumentParser
internal import Commands
public import ConsoleFrame
internal import ConsoleServing
internal import FoundationEssentials
internal import GateRuntime
internal import GateService
internal import Glibc
internal import ProcessSignals
internal import Transport
internal import TransportEngine

/// Serves the console of a running gate to a browser on this machine.
///
/// The console is this process, not the gate's: the gate has no further port, no page code runs in it, and the person
/// has exactly the rights of a client of the admin socket, which the gate logs with their user.
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

  @Flag(help: "Serve people on other machines, by the settings of admin.console.")
  var serve = false

  @Option(help: "What the console may do: view, support or admin (default: support).")
  var role: ConsoleRole?

  @Option(help: ArgumentHelp("The port on the loopback (default: a free one).", valueName: "port"))
  var port: UInt16?

  @Flag(name: .customLong("print"), help: "Only print the address; start no browser.")
  var printsOnly = false

  func validate() throws {
    guard !serve || role == nil && port == nil && !printsOnly else {
      throw ValidationError("--serve takes address and roles from admin.console: leave --role, --port and --print out")
    }
  }

  private static let host = "127.0.0.1"

  func run() async throws {
    guard !serve else {
      let console = ServedConsole(
        file: configuration.servedFile, options: configuration.shownOptions, variables: configuration.shownVariables)
      return try await console.run()
    }
    let client = try await configuration.client()
    // Whether this gate answers, and whether it knows what the console asks.
    _ = try await client.send("GET", "/v1/refusals?limit=1", RefusalListing.self)
    let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    ProcessSignals.hear([SIGINT, SIGTERM]) { _ in signal.yield() }
    let admission = ConsoleAdmission { user in
      Console.note("a connection was refused: \(ConsoleAdmission.reason(user))")
    }
    let engine = try start(ConsoleResponder(admission))
    defer { engine.stop() }
    let access = ConsoleAccess()
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
    guard let place = ConsoleResponder.end(engine.address) else { preconditionFailure("a console listens at a port") }
    admission.serve(
      ConsoleSite(
        host: Self.host, port: engine.address.port, pages: GateConsole(link), access: access, role: role ?? .support,
        users: ConsoleAdmission.callers(in: ProcessInfo.processInfo.environment)),
      at: place)
    engine.startAccepting()
    let address = "http://\(Self.host):\(engine.address.port)/#\(access.token)"
    Console.print(address)
    if !printsOnly, StandardOutput.isTerminal, let note = SystemBrowser.open(address).note { Console.note(note) }
    await access.waitForEnd(or: signals)
    ProcessSignals.obey([SIGINT, SIGTERM])
    await engine.drain(.goingAway, reason: "", timeout: .seconds(1))
  }

  private func start(_ responder: ConsoleResponder) throws(Failure) -> Engine {
    var limits = EngineLimits()
    limits.maxBody = 8 << 10
    limits.maxHead = 8 << 10
    limits.connectionsPerAddress = 32
    // Longer than the deadline of a request to the gate.
    limits.decisionTimeout = .seconds(60)
    do throws(Engine.StartError) {
      return try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: port ?? 0), loops: 1, tls: nil, responder: responder, limits: limits,
        accepts: false, admits: { responder.admits($0) })
    } catch {
      throw Failure(
        .cannotBind, "the console cannot listen at \(error)",
        hint: error.isAddressInUse ? "name another port: --port 0 selects a free one" : "name another port with --port")
    }
  }
}

extension ConsoleRole: ExpressibleByArgument {}
