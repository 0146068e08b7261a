internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Cryptography
internal import SimulatedDevice
internal import Transport
internal import TransportEngine

struct DevAppleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dev-apple",
    abstract: "Run a stand-in for Apple's data service, which exchanges receipts of simulated devices.",
    discussion: """
      It verifies the authorization and the receipt as Apple does, and counts the keys that each simulated device has \
      attested. SIGINT and SIGTERM stop it. A gate uses it with `endpoint` of `app_attest.apps[].risk`; `sallyport dev \
      --data-service` sets that, with the key in the authority's folder. Example:

        sallyport dev --data-service http://127.0.0.1:6202
        attest dev-apple --authority DIR

      --answer scripts the answers, one for each request; the last one stays: ok, a status, late (no answer for a \
      minute), garbage, other-key or redirect.

        attest dev-apple --authority DIR --answer 401 --answer ok
      """)

  @OptionGroup var options: GlobalOptions

  @Option(help: ArgumentHelp("The address to listen on; port 0 selects a free port.", valueName: "address:port"))
  var listen = "127.0.0.1:6202"

  @Flag(name: .customLong("tls"), help: "Serve HTTPS with the certificate of the authority's gate.")
  var isSecure = false

  @Option(
    help: ArgumentHelp("The id of the developer key that requests must name.", valueName: "id"))
  var keyID = DevAppleCommand.standardKeyID

  @Option(
    help: ArgumentHelp(
      "The time until a new receipt can be exchanged, in seconds. Apple's is about a day.", valueName: "seconds"))
  var pause = 86400

  @Option(name: .customLong("answer"), help: ArgumentHelp("Answer so; may be repeated.", valueName: "answer"))
  var answers: [ScriptedAnswer] = []

  /// The key id that `sallyport dev` writes into its configuration.
  static let standardKeyID = "SIMULATED1"

  func validate() throws {
    guard (0...31_536_000).contains(pause) else { throw ValidationError("--pause is 0 to 31536000 seconds") }
  }

  func run() async throws {
    let address = try ListenAddress.parse(listen)
    let options = options.withStandardAuthority
    let authority = try options.loadAuthority()
    let service = SimulatedDataService(
      authority: authority, keyID: keyID, publicKey: try developerKey(options).publicKey, pause: .seconds(pause))
    let signals = ClosingSignals {}
    defer { signals.stop() }
    let responder = DataServiceResponder(service: service, answers: answers, isJSON: options.json)
    let tls = try tls(options)
    let engine: Engine
    do throws(Engine.StartError) {
      engine = try Engine(listeningAt: address, loops: 1, tls: tls, responder: responder)
    } catch {
      throw Failure(
        .cannotBind, "\(error)", hint: error.isAddressInUse ? "another port: --listen 127.0.0.1:0" : nil)
    }
    let url = "\(isSecure ? "https" : "http")://\(engine.address)"
    if options.json { JSONOutput.print(["url": url]) } else { StandardOutput.write("\(url)\n") }
    await signals.received()
    engine.stop()
  }

  private func developerKey(_ options: GlobalOptions) throws(Failure) -> P256PrivateKey {
    guard let folder = options.authorityFolder else {
      throw Failure(.usage, "no folder of an authority", hint: "name it with --authority")
    }
    do throws(AuthorityFolderError) { return try folder.developerKey() } catch { throw Failure(error) }
  }

  private func tls(_ options: GlobalOptions) throws(Failure) -> ServerTLS? {
    guard isSecure, let folder = options.authorityFolder else { return nil }
    do throws(ServerTLS.SetupError) {
      return try ServerTLS(.init(certificateFile: folder.serverCertificatePath, keyFile: folder.serverKeyPath))
    } catch {
      throw Failure(.noInput, "\(error)")
    }
  }
}

/// One answer of a script.
enum ScriptedAnswer: Sendable, Hashable, ExpressibleByArgument {
  /// No answer for a minute.
  case late
  case reply(SimulatedDataService.Answer)

  init?(argument: String) {
    switch argument {
    case "ok": self = .reply(.genuine)
    case "late": self = .late
    case "garbage": self = .reply(.garbage)
    case "other-key": self = .reply(.otherKey)
    case "redirect": self = .reply(.redirect)
    default:
      guard let status = Int(argument), (200...599).contains(status) else { return nil }
      self = .reply(.status(status))
    }
  }
}
