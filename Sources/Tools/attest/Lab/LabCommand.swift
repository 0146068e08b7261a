internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import Foundation
internal import Transport
internal import TransportEngine

struct LabCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lab",
    abstract: "An app with a second factor on a simulated phone: a page to try it, and scenarios that judge a backend.",
    discussion: """
      Example: a page whose URL is printed, with gate and backend or at running ones, and all scenarios
        attest lab --all
        attest lab wss://localhost:6200/ --authority DIR --messages b.log
        attest lab run wss://localhost:6200/ --authority DIR --messages b.log
      """,
    subcommands: [LabServeCommand.self, LabRunCommand.self], defaultSubcommand: LabServeCommand.self)
}

struct LabServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve the page of the device lab on this machine.",
    discussion: """
      The page shows an app and its phone. Prompts wait until they are answered on the page, and the phone's settings \
      can be changed at any time. It uses a running gate with an MFA backend; --all starts both, `sallyport dev` and \
      `mfa-backend`, which are next to `attest` or in PATH, in a temporary folder. The page is for browsers on this \
      machine, and its URL has a secret. SIGINT and SIGTERM stop everything. Example:
        attest lab --all
        attest lab wss://localhost:6200/ --authority DIR --messages b.log
      """)

  @OptionGroup var options: GlobalOptions

  @Argument(help: "The gate, like wss://localhost:6200/.")
  var url: String?

  @Flag(help: "Start a development gate and an MFA backend, and stop them at the end.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "With --all, the folder of their files, which stays; by default a temporary one.", valueName: "dir"))
  var folder: String?

  @Option(help: ArgumentHelp("The log of the backend, in which the phone finds its codes.", valueName: "file"))
  var messages: String?

  @Option(help: "How requests are sent: rest or socket.")
  var by = LabWay.rest

  @Option(help: ArgumentHelp("The port on the loopback; 0 selects a free one.", valueName: "port"))
  var port: UInt16 = 0

  func validate() throws {
    if all {
      guard url == nil, messages == nil, options.authority == nil, options.ca == nil else {
        throw ValidationError("--all starts its own gate and backend: no URL, --messages, --authority and --ca")
      }
    } else {
      guard url != nil else { throw ValidationError("Missing expected argument '<url>'; --all starts a gate") }
      guard messages != nil else { throw ValidationError("Missing expected argument '--messages <file>'") }
      guard folder == nil else { throw ValidationError("--folder goes with --all") }
    }
  }

  func run() async throws {
    let signals = ClosingSignals {}
    defer { signals.stop() }
    guard all else {
      // `validate` has found both.
      return try await serve(at: url ?? "", messages ?? "", options, until: signals)
    }
    let folder = try LabFolder(folder)
    defer { folder.remove() }
    let programs = try await LabPrograms(in: folder, until: signals)
    let failure = Shared<Failure?>(nil)
    let watch = Task {
      guard let exit = await programs.failure(), !signals.wereReceived else { return }
      failure.set(exit)
      signals.end()
    }
    var options = options
    options.authority = programs.authority
    let result: Result<Void, any Error>
    do {
      result = .success(try await serve(at: programs.url, programs.messages, options, until: signals))
    } catch {
      result = .failure(error)
    }
    watch.cancel()
    await programs.stop()
    try result.get()
    if let failure = failure.get() { throw failure }
  }

  /// Serves the page until `signals` end it.
  private func serve(
    at url: String, _ messages: String, _ options: GlobalOptions, until signals: ClosingSignals
  ) async throws {
    let inbox = try LabInbox.open(messages)
    let gate = try LabGate(options, url: url)
    let way = by
    let lab = try LabSession(
      as: .random(for: "page"), messages: inbox, makeBackend: { try gate.makeBackend(by: way) },
      makeIdentity: { .random(for: $0.id) }, now: { .now() })
    let token = Hex.encode(SecureRandom.bytes(16))
    let server = LabServer(lab: lab, token: token)
    let engine: Engine
    do throws(Engine.StartError) {
      engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: port), loops: 1, tls: nil, responder: server, accepts: false)
    } catch {
      throw Failure(.cannotBind, "\(error)", hint: error.isAddressInUse ? "another port: --port 0" : nil)
    }
    guard case .ipv4(_, let port) = engine.address else {
      throw Failure(.internalError, "not a port: \(engine.address)")
    }
    server.setPort(port)
    engine.startAccepting()
    let page = "http://127.0.0.1:\(port)/#\(token)"
    if options.json { JSONOutput.print(["url": page]) } else { StandardOutput.write("\(page)\n") }
    await signals.received()
    await engine.drain(.goingAway, reason: "", timeout: .seconds(2))
    engine.stop()
    await lab.end()
  }
}

/// The messages of the phone.
enum LabInbox {
  static func open(_ path: String) throws(Failure) -> LogMessages {
    guard FileManager.default.isReadableFile(atPath: path) else {
      throw Failure(
        .noInput, "cannot read \(path)",
        hint: "--messages names the log of `mfa-backend run --sms-sink log`, with its codes")
    }
    return LogMessages(path: path)
  }
}
