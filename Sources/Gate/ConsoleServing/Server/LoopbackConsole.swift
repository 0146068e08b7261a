public import ArgumentParser
public import Commands
internal import FoundationEssentials
internal import Glibc
internal import ProcessSignals
internal import Transport
internal import TransportEngine

/// The options of a console, and its server for a browser on this machine.
///
/// The console is the process of the command and not the service's: the service has no further port, no page code runs
/// in it, and a person has exactly the rights of a client of the admin server.
public struct LoopbackConsole: ParsableArguments {
  @Flag(help: "Serve people on other machines, by the settings of admin.console.")
  public var serve = false

  @Option(help: "What the console may do: view, support or admin (default: support).")
  var role: ConsoleRole?

  @Option(help: ArgumentHelp("The port on the loopback (default: a free one).", valueName: "port"))
  var port: UInt16?

  @Flag(name: .customLong("print"), help: "Only print the address; start no browser.")
  var printsOnly = false

  public init() {}

  public func validate() throws {
    guard !serve || role == nil && port == nil && !printsOnly else {
      throw ValidationError("--serve takes address and roles from admin.console: leave --role, --port and --print out")
    }
  }

  /// Prints the address, and serves until SIGINT, SIGTERM, a sign-out, or the end of the session.
  ///
  /// - Throws: `Failure` if the port cannot be had.
  public func run(_ pages: any ConsolePages) async throws(Failure) {
    let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    ProcessSignals.hear([SIGINT, SIGTERM]) { _ in signal.yield() }
    let admission = ConsoleAdmission { user in
      Console.note("a connection was refused: \(ConsoleAdmission.reason(user))")
    }
    let engine = try listen(ConsoleResponder(admission))
    defer { engine.stop() }
    let access = ConsoleAccess()
    // `listen` has opened an IPv4 socket: only a Unix socket has no such end.
    guard let place = ConsoleResponder.end(engine.address) else { preconditionFailure("a console listens on TCP") }
    admission.serve(
      ConsoleSite(
        host: Self.host, port: engine.address.port, pages: pages, access: access, role: role ?? .support,
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

  private static let host = "127.0.0.1"

  private func listen(_ responder: ConsoleResponder) throws(Failure) -> Engine {
    var limits = EngineLimits()
    limits.maxBody = 8 << 10
    limits.maxHead = 8 << 10
    limits.connectionsPerAddress = 32
    // Longer than the deadline of a request to the service.
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
