public import Commands
public import ConfigurationEngine
internal import FoundationEssentials
internal import Glibc
public import Logging
internal import Observability
internal import ProcessFrame
internal import ProcessSignals
internal import Transport
internal import TransportEngine

/// Serves the console of a service over TLS, for people on other machines, until a signal ends it.
///
/// It asks the service by its admin server, as the console on the loopback does, and goes on while the service is down.
/// Changed files of `admin.console` count within seconds, and changed settings after SIGHUP.
public actor ConsoleService {
  /// Reads the settings. The second value is called when they are in use: a configuration with a fault changes nothing.
  public typealias Load = @Sendable () throws(Failure) -> (settings: ConsoleSettings, adopt: @Sendable () -> Void)

  private enum Wish { case reload, end }

  /// How often the files are looked at.
  private static let fileInterval = Duration.seconds(5)
  /// The descriptors that connections may have. Each connection has deadlines, so that others get their turn.
  private static let mostDescriptors: Int32 = 320

  private let load: Load
  private var settings: ConsoleSettings
  private let people: ConsolePeople
  private let responder: ConsoleResponder
  private let engine: Engine
  /// Of the files in use.
  private var digests: [[UInt8]?]
  /// The TLS settings in use.
  private var served: ServerTLS
  /// Why changed files are not in use, and their digests; `nil` if none were refused.
  private var refused: (reason: String, digests: [[UInt8]?])?
  private let logger: Logger

  /// Runs the console until SIGINT or SIGTERM.
  ///
  /// - Parameters:
  ///   - pages: The pages of the service.
  ///   - logger: Gets a line for each sign-in, sign-out, refused handshake and reload.
  ///   - load: Reads the settings, at the start and after SIGHUP.
  /// - Throws: `Failure` if the console cannot start.
  public static func run(
    _ pages: any ConsolePages, logger: Logger, load: @escaping Load
  ) async throws(Failure) {
    // Signals that arrive before the console serves count, too.
    let (wishes, wish) = AsyncStream.makeStream(of: Wish.self, bufferingPolicy: .bufferingNewest(8))
    ProcessSignals.hear([SIGINT, SIGTERM, SIGHUP]) { wish.yield($0 == SIGHUP ? .reload : .end) }
    let service = try ConsoleService(pages, logger, load)
    await service.serve(wishes)
  }

  private init(_ pages: any ConsolePages, _ logger: Logger, _ load: @escaping Load) throws(Failure) {
    let (settings, adopt) = try load()
    (self.load, self.settings, self.logger) = (load, settings, logger)
    let files = ConsoleFiles(of: settings)
    digests = files.digests
    let tls = try Self.tls(files)
    served = tls
    people = ConsolePeople(try Self.rules(settings)) { Self.write($0, to: logger) }
    responder = ConsoleResponder(
      ConsoleSite(host: settings.url.host, port: settings.url.port, pages: pages, people: people))
    let lines = ConnectionLines(logger)
    engine = try Self.listen(settings, tls, responder) { lines.write($0) }
    adopt()
  }

  private static func tls(_ files: ConsoleFiles) throws(Failure) -> ServerTLS {
    do throws(ConsoleFileError) { return try files.load() } catch {
      throw Failure(.configuration, error.description, hint: error.hint)
    }
  }

  private static func rules(_ console: ConsoleSettings) throws(Failure) -> ConsolePeople.Rules {
    do throws(ConsoleFileError) {
      var provider: OpenIDProvider?
      if let settings = console.provider {
        provider = OpenIDProvider(
          settings, secret: try ConsoleFiles(of: console).clientSecret(),
          try ProviderExchange(authorityFile: settings.authorityFile))
      }
      return ConsolePeople.Rules(
        acceptsCertificates: console.clientAuthority != nil, provider: provider, directory: ConsoleDirectory(console))
    } catch {
      throw Failure(.configuration, error.description, hint: error.hint)
    }
  }

  private static func listen(
    _ console: ConsoleSettings, _ tls: ServerTLS, _ responder: ConsoleResponder,
    _ report: @escaping @Sendable (EngineEvent) -> Void
  ) throws(Failure) -> Engine {
    var limits = EngineLimits()
    limits.maxBody = 8 << 10
    limits.maxHead = 16 << 10
    limits.connectionsPerAddress = 32
    limits.keepAliveTimeout = .seconds(30)
    // Longer than the deadline of a request to the gate.
    limits.decisionTimeout = .seconds(60)
    limits.descriptorCeiling = mostDescriptors
    let text = console.listen.text
    guard let address = SocketAddress(literal: console.listen.address, port: console.listen.port) else {
      throw Failure(.configuration, "admin.console.listen: \(text) is no address", hint: "set it to ADDRESS:PORT")
    }
    do throws(Engine.StartError) {
      return try Engine(
        listeningAt: address, loops: 1, tls: tls, responder: responder, limits: limits, report: report)
    } catch {
      throw Failure(
        .cannotBind, "the console cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: end it, or change admin.console.listen"
          : "change admin.console.listen to an address of this machine and a port from 1024 on")
    }
  }

  // MARK: Serving

  private func serve(_ wishes: AsyncStream<Wish>) async {
    let environment = ProcessInfo.processInfo.environment
    let socket = NotifySocket(environment: environment)
    let watchdog = socket.flatMap { Watchdog(environment: environment, socket: $0) }
    let engine = engine
    let alive = watchdog.map { watchdog in
      Task { await watchdog.run(startsLater: false) { await engine.turnAround() } }
    }
    let watching = Task { [weak self] in
      while !Task.isCancelled {
        try? await Task.sleep(for: Self.fileInterval)
        await self?.adoptChangedFiles()
      }
    }
    logger.info(
      "console listening", metadata: ["address": "\(engine.address)", "url": "\(settings.url.text)"])
    socket?.send(.ready, .status("serving \(settings.url.text)"))
    for await wish in wishes {
      guard case .reload = wish else { break }
      await reload()
    }
    socket?.send(.stopping)
    watching.cancel()
    ProcessSignals.obey([SIGINT, SIGTERM])
    await engine.drain(.goingAway, reason: "", timeout: .seconds(2))
    alive?.cancel()
    logger.info("console stopped")
  }

  private func reload() async {
    do throws(Failure) {
      let (new, adopt) = try load()
      if new.listen != settings.listen || new.url != settings.url {
        logger.warning("admin.console.listen and admin.console.url need a restart of the console")
      }
      try await use(new)
      adopt()
      logger.info("configuration reloaded", metadata: ["sessions": .number(people.sessionCount)])
    } catch {
      logger.error("configuration refused", metadata: ["reason": "\(error.report(separator: "; "))"])
    }
  }

  /// Uses a certificate that was renewed, or a list with one more revoked certificate. Refused files are tried again:
  /// what was wrong need not be their content.
  private func adoptChangedFiles() async {
    let current = ConsoleFiles(of: settings).digests
    guard current != digests else {
      refused = nil
      return
    }
    do throws(Failure) {
      try await use(settings)
      logger.info("files reloaded")
    } catch {
      if refused?.digests != current { adoptRevocations() }
      let reason = error.report(separator: "; ")
      if refused?.reason != reason { logger.error("files refused", metadata: ["reason": "\(reason)"]) }
      refused = (reason, current)
    }
  }

  /// Lets a new list of revoked certificates count although other files are refused.
  private func adoptRevocations() {
    guard let file = settings.clientAuthority?.revocationListFile else { return }
    do throws(ServerTLS.SetupError) {
      try served.adopt(revocationListFile: file)
      logger.notice("list of revoked certificates read alone", metadata: ["file": "\(file)"])
    } catch {
      logger.error("list of revoked certificates not read: the old one counts", metadata: ["reason": "\(error)"])
    }
  }

  private func use(_ new: ConsoleSettings) async throws(Failure) {
    let files = ConsoleFiles(of: new)
    // Before the files are read: a later change is noticed the next time.
    let digests = files.digests
    let tls = try Self.tls(files)
    let rules = try Self.rules(new)
    settings = new
    people.replace(rules)
    do throws(ServerTLS.SetupError) { try await engine.replace(responder: responder, tls: tls) } catch {
      throw Failure(.configuration, "admin.console: \(error)", hint: "correct the file")
    }
    (self.digests, served, refused) = (digests, tls, nil)
  }

  // MARK: Log

  private static func write(_ event: ConsolePeople.Event, to logger: Logger) {
    func fields(_ address: String?, _ others: Logger.Metadata) -> Logger.Metadata {
      guard let address else { return others }
      return others.merging(["client": "\(address)"]) { $1 }
    }
    switch event {
    case .signedIn(let person, let role, let address):
      logger.info("signed in", metadata: fields(address, ["person": "\(person.name)", "role": "\(role.rawValue)"]))
    case .signedOut(let person): logger.info("signed out", metadata: ["person": "\(person.name)"])
    case .lostRole(let person):
      logger.info("session ended: the person has no role any more", metadata: ["person": "\(person.name)"])
    case .withoutRole(let name, let address):
      logger.info("sign-in refused: no role", metadata: fields(address, ["person": "\(name)"]))
    case .providerRefused(let reason, let address):
      logger.info("sign-in refused", metadata: fields(address, ["reason": "\(reason)"]))
    }
  }
}
