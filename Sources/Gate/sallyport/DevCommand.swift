internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Cryptography
internal import FoundationEssentials
internal import GateRuntime
internal import Glibc
internal import Preflight
internal import Settings
internal import SimulatedDevice
internal import Transport
internal import TransportEngine

/// A gate for trying things: its own authority, simulated roots, one command.
struct DevCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dev",
    abstract: "Serves with an authority of its own, for development: simulated devices are let in, real ones are not.",
    discussion: """
      Makes, in a folder, a TLS certificate and the roots that simulated devices are attested by, or uses those that \
      it made before. The app's environment is development.

      Example:

        sallyport dev --upstream ws://127.0.0.1:8080
      """)

  @Option(help: "Where admitted sessions go: ws://, wss://, unix:/path or tcp://.")
  var upstream = "ws://127.0.0.1:8080"

  @Option(help: "What is handed on: upgrades, or all for ordinary requests too.")
  var forward = "upgrades"

  @Option(help: "The folder of the authority and the gate's state.")
  var folder: String?

  @Option(help: "The address to listen at.")
  var address = "127.0.0.1"

  @Option(help: "The port to listen at; 0 takes any free one.")
  var port: UInt16 = 6200

  @Option(help: "The app that simulated devices run, TEAMID.bundle.id (default: SALLYPORT1.com.example.app).")
  var appID: String?

  @Option(help: "PEM authority of client certificates of debug builds.")
  var clientCA: String?

  @Flag(help: "Print what the start says as one line of JSON.")
  var json = false

  func run() async throws {
    do throws(SallyportError) {
      let folder = AuthorityFolder(path: Self.absolute(try chosenFolder()))
      let authority = try authority(in: folder)
      let server = try await open(folder, appID: authority.appID)
      let settings = await server.settings
      await server.serve {
        announce(authority, in: folder, url: "wss://localhost:\(server.port)/")
        Task { await warnOfUpstream(settings) }
      }
    } catch {
      throw error.told()
    }
  }

  private func authority(in folder: AuthorityFolder) throws(SallyportError) -> TestAuthority {
    if let appID, AppID(appID) == nil {
      throw SallyportError(
        .usage, error: "--app-id: \(appID) is not TEAMID.bundle.id, with ten of A-Z and 0-9 before the first dot",
        hint: "write AAABBBCCC1.com.example.app")
    }
    let authority: TestAuthority
    do throws(AuthorityFolderError) {
      authority = try folder.loadOrMake(appID: appID ?? "SALLYPORT1.com.example.app", at: .now())
    } catch {
      // A folder of something else: nothing in it is to be removed.
      if case .absent(let path) = error {
        throw SallyportError(
          .cannotCreate, error: "\(path) is not empty, and no folder of sallyport dev: no authority is in it",
          hint: "name a folder that is empty, or not there yet, with --folder")
      }
      throw SallyportError(.cannotCreate, error: error.description, hint: error.hint)
    }
    if let appID, appID != authority.appID {
      throw SallyportError(
        .usage, error: "--app-id: the devices of \(folder.path) run \(authority.appID)",
        hint: "name another folder with --folder")
    }
    return authority
  }

  /// A gate with the configuration that this command writes; where it does not come up, the file is as it was, since
  /// another gate may run with it.
  private func open(_ folder: AuthorityFolder, appID: String) async throws(SallyportError) -> GateServer {
    try checkFlags(in: folder)
    let path = folder.path + "/sallyport.yaml"
    let before = try? Data(contentsOf: URL(filePath: path))
    try writeConfiguration(to: path, in: folder, appID: appID)
    do throws(SallyportError) {
      // Variables and a .env of a gate of one's own say nothing here.
      return try await GateServer.open(SettingsLoader(file: path, environment: [:], workingDirectory: folder.path))
    } catch {
      if let before { try? before.write(to: URL(filePath: path), options: .atomic) }
      throw namingFlags(in: error)
    }
  }

  /// The first socket would get a 502, and its developer would look for the reason in the device.
  private func warnOfUpstream(_ settings: GateSettings) async {
    for result in await Preflight(settings, store: nil, at: .now()).upstreams() where result.outcome == .failed {
      Console.error("warning: \(result.text)\nhint: start it, as with `attest echo`; the gate need not be restarted")
    }
  }

  // MARK: Faults

  /// What the user gave, as the keys that it becomes.
  private var givenFlags: [FlagSetting] {
    let flags = [
      FlagSetting(flag: "--address", key: "listen.address", text: address),
      FlagSetting(flag: "--port", key: "listen.port", text: "\(port)"),
      FlagSetting(flag: "--upstream", key: "routes[0].upstream", text: upstream),
      FlagSetting(flag: "--forward", key: "routes[0].forward", text: forward),
    ]
    guard let clientCA else { return flags }
    return flags + [
      FlagSetting(flag: "--client-ca", key: "debug_mtls.client_ca_file", text: Self.absolute(clientCA))
    ]
  }

  /// Tells what is wrong with the flags as such: the file that is made of them is nothing that the user wrote.
  private func checkFlags(in folder: AuthorityFolder) throws(SallyportError) {
    let made = [
      FlagSetting(flag: "--folder", key: "tls.cert_file", text: folder.serverCertificatePath),
      FlagSetting(flag: "--folder", key: "tls.key_file", text: folder.serverKeyPath),
    ]
    let loader = SettingsLoader(
      file: nil, flags: made + givenFlags, environment: ["HOME": folder.path], workingDirectory: folder.path + "/none")
    do throws(ConfigurationFaults) {
      _ = try loader.load()
    } catch {
      throw SallyportError(.configuration, lines: error.description)
    }
  }

  /// The same with the flags in the place of the keys that they become.
  private func namingFlags(in failure: SallyportError) -> SallyportError {
    let lines = givenFlags.reduce(failure.lines) { $0.replacing($1.key, with: $1.flag) }
    return SallyportError(failure.status, lines: lines)
  }

  /// What a developer needs to go on with.
  private func announce(_ authority: TestAuthority, in folder: AuthorityFolder, url: String) {
    let fingerprint = Hex.encode(authority.server.certificate.fingerprint)
    let next = "attest connect \(url) --authority \(folder.path)"
    guard !json else {
      Console.print(
        JSONText.object([
          "url": url, "fingerprint": fingerprint, "folder": folder.path, "app": authority.appID, "upstream": upstream,
          "next": next,
        ]))
      return
    }
    Console.print(
      """
      url          \(url)
      fingerprint  SHA-256 \(fingerprint)
      folder       \(folder.path)
      app          \(authority.appID) (environment development, simulated roots)
      upstream     \(upstream)
      next         \(next)
      """)
  }

  /// The named folder, or one in the user's data folder (XDG Base Directory). Never a shared folder: keys are kept
  /// there.
  private func chosenFolder() throws(SallyportError) -> String {
    if let folder { return folder }
    let environment = ProcessInfo.processInfo.environment
    func absolute(_ name: String) -> String? { environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil } }
    guard let data = absolute("XDG_DATA_HOME") ?? absolute("HOME").map({ $0 + "/.local/share" }) else {
      throw SallyportError(
        .noInput, error: "there is no folder for the authority: neither HOME nor XDG_DATA_HOME names one",
        hint: "name one with --folder")
    }
    return data + "/sallyport/dev"
  }

  private static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  /// The configuration that a gate of one's own would begin with, as a file to look at and to keep.
  private func writeConfiguration(
    to path: String, in folder: AuthorityFolder, appID: String
  ) throws(SallyportError) {
    let parts = appID.split(separator: ".", maxSplits: 1)
    var text = """
      # Made by sallyport dev, and made again by each start.
      version: 1
      listen: { address: \(quoted(address)), port: \(port) }
      tls: { cert_file: \(quoted(folder.serverCertificatePath)), key_file: \(quoted(folder.serverKeyPath)) }
      app_attest:
        apps: [{ team_id: \(quoted(String(parts[0]))), bundle_id: \(quoted(String(parts.last ?? ""))), environments: [development] }]
        trust: { attestation_root_file: \(quoted(folder.attestationRootPath)), receipt_root_file: \(quoted(folder.receiptRootPath)) }
      routes: [{ path: /, upstream: \(quoted(upstream)), forward: \(quoted(forward)) }]
      store: { url: \(quoted("sqlite://" + folder.path + "/state.db")) }

      """
    // Longer paths a socket cannot have.
    let socket = folder.path + "/admin.sock"
    if socket.utf8.count <= 107 { text += "admin: { listen: \(quoted("unix:" + socket)) }\n" }
    if let clientCA { text += "debug_mtls: { client_ca_file: \(quoted(Self.absolute(clientCA))) }\n" }
    do {
      try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
    } catch {
      throw SallyportError(
        .cannotCreate, error: "\(path): cannot be written", hint: "choose another folder with --folder")
    }
  }

  /// A double-quoted scalar of YAML: JSON's string is one.
  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
