internal import AppAttest
internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Cryptography
internal import FoundationEssentials
internal import GateRuntime
internal import Glibc
internal import Settings
internal import SimulatedDevice
internal import Transport
internal import TransportEngine

/// Runs a gate for development: one command, with its own CA and simulated Apple roots.
struct DevCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dev",
    abstract: "Runs a development gate with its own CA, for simulated devices or for a phone.",
    discussion: """
      Creates a TLS certificate and the roots of simulated devices in a folder, or uses those that are there. The \
      app's environment is development. Simulated devices of iOS and Android are admitted and real ones are not; with \
      --real, real ones of iOS are admitted, and no simulated ones.

      With --host other machines reach the gate. The certificate is for this name and the addresses of this machine, \
      and a phone gets the CA as a profile, over plain HTTP from a port of its own.

      With -c the gate rehearses a configuration: it has the apps, routes, limits and sessions of the file, for \
      simulated devices. Certificate, store, admin socket and roots are those of the folder, and it listens on \
      loopback. PROXY headers, ACME, metrics and telemetry are off. Each difference from the file is printed. Only the \
      file counts, without the environment.

      With --data-service the gate exchanges the receipts of simulated devices at that server, which `attest dev-apple` \
      is, and refuses devices that attested more than ten keys.

      Example: for simulated devices, for a phone, and with an operator's configuration

        sallyport dev --upstream ws://127.0.0.1:8080
        sallyport dev --host gate.local --real --app-id AAABBBCCC1.com.example.app
        sallyport dev -c gate.yaml
      """)

  @Option(
    name: [.short, .customLong("config")],
    help: "Rehearse this configuration file (YAML) with simulated devices.")
  var config: String?

  @Option(
    help: "Where admitted sessions go: ws://, wss://, unix:/path or tcp:// (default: ws://127.0.0.1:8080).")
  var upstream: String?

  @Option(help: "What is forwarded: upgrades, or all to include ordinary requests (default: upgrades).")
  var forward: String?

  @Option(help: "The folder of the CA and the gate's state.")
  var folder: String?

  @Option(help: "The name or address under which a phone reaches the gate.")
  var host: String?

  @Flag(help: "Admit real devices with a development build of --app-id, by Apple's roots.")
  var real = false

  @Option(help: "The address to listen on (default: 127.0.0.1, with --host every address).")
  var address: String?

  @Option(help: "The port to listen on; 0 selects any free port.")
  var port: UInt16 = 6200

  @Option(help: "With --host, the port that serves the profile; 0 selects any free port.")
  var profilePort: UInt16 = 6201

  @Option(help: "The app of the devices, TEAMID.bundle.id (default: SALLYPORT1.com.example.app).")
  var appID: String?

  @Option(
    help: ArgumentHelp(
      "Exchange receipts at this server in Apple's place, for example http://127.0.0.1:6202.", valueName: "url"))
  var dataService: String?

  @Option(help: "The CA certificate (PEM) for client certificates of debug builds.")
  var clientCA: String?

  @Flag(help: "Print the start summary as one line of JSON.")
  var json = false

  func run() async throws {
    let rehearsal = try chosenRehearsal()
    let host = try chosenHost()
    let app = try chosenApp()
    let folder = AuthorityFolder(path: try Self.usable(Self.absolute(try chosenFolder())))
    let authority = try authority(in: folder, for: host, rehearsal)
    if dataService != nil { try makeDeveloperKey(in: folder) }
    // Before the configuration is written, which stays as it was if the port is taken.
    let profiles = host == nil ? nil : try profileServer(of: authority)
    defer { profiles?.stop() }
    let (server, differences) = try await open(folder, authority, appID: app ?? authority.appID, rehearsal)
    let settings = await server.settings
    await server.serve {
      DevAnnouncement(
        authority: authority, folder: folder.path, appID: app ?? authority.appID, isReal: real,
        settings: settings, host: host, port: server.port, profile: host.flatMap { profiles?.url(host: $0) },
        configuration: config, differences: differences
      ).print(asJSON: json)
      Task { await warnOfUpstream(settings) }
    }
  }

  /// The file of `-c`. The options that set what the file sets are refused.
  private func chosenRehearsal() throws(Failure) -> DevRehearsal? {
    guard let config else { return nil }
    let others = [
      ("--upstream", upstream != nil), ("--forward", forward != nil), ("--real", real), ("--app-id", appID != nil),
      ("--client-ca", clientCA != nil), ("--data-service", dataService != nil),
    ]
    if let other = others.first(where: \.1)?.0 {
      throw Failure(
        .usage, "\(other): not with -c: apps, routes and client certificates are those of the file",
        hint: "change a copy of the file, or leave -c out")
    }
    return try DevRehearsal(file: config)
  }

  /// Makes the key that signs requests to the data service. Real devices have receipts that only Apple exchanges.
  private func makeDeveloperKey(in folder: AuthorityFolder) throws(Failure) {
    guard !real else {
      throw Failure(
        .usage, "--data-service: not with --real: only Apple exchanges the receipts of real devices",
        hint: "leave one of them out")
    }
    do throws(AuthorityFolderError) { _ = try folder.developerKey() } catch {
      throw Failure(.cannotCreate, error.description, hint: error.hint)
    }
  }

  private func chosenHost() throws(Failure) -> DevHost? {
    guard let host else { return nil }
    guard let chosen = DevHost(host) else {
      throw Failure(
        .usage, "--host: \(host) is neither a host name nor an address",
        hint: "write it as in a URL, without scheme and port: gate.local, or 192.168.1.5")
    }
    return chosen
  }

  /// The app of `--app-id`, which real devices need: their app is never the example's.
  private func chosenApp() throws(Failure) -> String? {
    guard let appID else {
      guard !real else {
        throw Failure(
          .usage, "--real: the app is not known", hint: "add --app-id TEAMID.bundle.id, as Xcode shows them")
      }
      return nil
    }
    guard AppID(appID) != nil else {
      throw Failure(
        .usage, "--app-id: \(appID) is not TEAMID.bundle.id, with ten characters of A-Z and 0-9 before the dot",
        hint: "write AAABBBCCC1.com.example.app")
    }
    return appID
  }

  private func profileServer(of authority: TestAuthority) throws(Failure) -> ProfileServer {
    let every = SocketAddress.ipv6([UInt8](repeating: 0, count: 16), port: profilePort)
    let own = address.flatMap(DevHost.bytes(ofAddress:)).map { bytes in
      bytes.count == 4 ? SocketAddress.ipv4(bytes, port: profilePort) : .ipv6(bytes, port: profilePort)
    }
    return try ProfileServer(of: authority.tlsAuthority.certificate, at: own ?? every) { client in
      Console.note("profile fetched by \(client.host)")
    }
  }

  private func authority(
    in folder: AuthorityFolder, for host: DevHost?, _ rehearsal: DevRehearsal?
  ) throws(Failure) -> TestAuthority {
    let apps = rehearsal?.appIDs ?? []
    let authority: TestAuthority
    do throws(AuthorityFolderError) {
      authority = try folder.loadOrMake(
        appID: appID ?? apps.first ?? "SALLYPORT1.com.example.app", names: host?.serverNames ?? .loopback, at: .now())
    } catch {
      // The folder holds something else, so nothing in it may be overwritten.
      if case .absent(let path) = error {
        throw Failure(
          .cannotCreate, "\(path) is not empty and contains no CA of sallyport dev",
          hint: "name an empty or new folder with --folder")
      }
      throw Failure(.cannotCreate, error.description, hint: error.hint)
    }
    // The CA may serve several apps of real devices: a phone then trusts it once.
    if !real, let appID, appID != authority.appID {
      throw Failure(
        .usage, "--app-id: the devices in \(folder.path) run \(authority.appID)",
        hint: "name another folder with --folder")
    }
    if let app = apps.first, !apps.contains(authority.appID) {
      throw Failure(
        .usage, "-c: the devices in \(folder.path) run \(authority.appID), which is no app of the file",
        hint: "name another folder with --folder, for example \(folder.path)-\(app)")
    }
    return authority
  }

  /// Starts a gate with the configuration file that this command writes, and returns the differences from the file of
  /// `rehearsal`. If the start fails, restores the previous file, because another gate may be running with it.
  private func open(
    _ folder: AuthorityFolder, _ authority: TestAuthority, appID: String, _ rehearsal: DevRehearsal?
  ) async throws(Failure) -> (GateServer, [Rehearsal.Difference]) {
    let rehearsed = try rehearsal?.settings(in: folder, givenFlags)
    if rehearsed == nil { try checkFlags(in: folder) }
    let path = DevFolder(path: folder.path).configuration
    let before = try? Data(contentsOf: URL(filePath: path))
    let text = rehearsed?.settings.effectiveYAML ?? configuration(in: folder, authority, appID: appID)
    try write("# Generated by sallyport dev. Each start overwrites it.\n" + text, to: path)
    do throws(Failure) {
      // The environment and the .env file of the user's own gate must not affect this one.
      let loader = SettingsLoader(file: path, environment: [:], workingDirectory: folder.path)
      return (try await GateServer.open(loader), rehearsed?.differences ?? [])
    } catch {
      if let before { try? before.write(to: URL(filePath: path), options: .atomic) }
      throw namingFlags(in: error)
    }
  }

  /// Warns at start if the upstream is not reachable. Otherwise the developer sees only a 502 and looks for the fault
  /// in the device.
  private func warnOfUpstream(_ settings: GateSettings) async {
    for result in await Preflight(settings, store: nil, at: .now()).upstreams() where result.outcome == .failed {
      Console.note(
        "warning: \(result.text)\nhint: start it, for example with `attest echo`; the gate does not need a restart")
    }
  }

  private var chosenUpstream: String { upstream ?? "ws://127.0.0.1:8080" }
  private var chosenForwarding: String { forward ?? "upgrades" }
  private var listenAddress: String { address ?? (host == nil ? "127.0.0.1" : "::") }

  // MARK: Faults

  /// The command-line flags, with the settings keys that they become.
  private var givenFlags: [FlagSetting] {
    var flags = [
      FlagSetting(flag: "--address", key: "listen.address", text: listenAddress),
      FlagSetting(flag: "--port", key: "listen.port", text: "\(port)"),
    ]
    guard config == nil else { return flags }
    flags += [
      FlagSetting(flag: "--upstream", key: "routes[0].upstream", text: chosenUpstream),
      FlagSetting(flag: "--forward", key: "routes[0].forward", text: chosenForwarding),
    ]
    guard let clientCA else { return flags }
    return flags + [
      FlagSetting(flag: "--client-ca", key: "debug_mtls.client_ca_file", text: Self.absolute(clientCA))
    ]
  }

  /// Validates the flags before the file is written, so that errors name the flags instead of the generated file.
  private func checkFlags(in folder: AuthorityFolder) throws(Failure) {
    let made = [
      FlagSetting(flag: "--folder", key: "tls.cert_file", text: folder.serverCertificatePath),
      FlagSetting(flag: "--folder", key: "tls.key_file", text: folder.serverKeyPath),
    ]
    let loader = SettingsLoader(
      file: nil, flags: made + givenFlags, environment: ["HOME": folder.path], workingDirectory: folder.path + "/none")
    do throws(ConfigurationErrors) {
      _ = try loader.load()
    } catch {
      throw Failure(error)
    }
  }

  /// Replaces settings keys in the error by the flags that set them.
  private func namingFlags(in failure: Failure) -> Failure {
    Failure(
      failure.status,
      failure.messages.map { message in
        message.replacingText { text in givenFlags.reduce(text) { $0.replacing($1.key, with: $1.flag) } }
      })
  }

  /// Returns the folder of `--folder`, or the standard one.
  private func chosenFolder() throws(Failure) -> String {
    if let folder { return folder }
    guard let standard = DevFolder.standard(ProcessInfo.processInfo.environment) else {
      throw Failure(
        .noInput, "no folder for the CA: neither HOME nor XDG_DATA_HOME is set to an absolute path",
        hint: "name a folder with --folder")
    }
    return standard.path
  }

  /// Returns `path` if it can be part of a store's URL and of a line in a configuration file.
  private static func usable(_ path: String) throws(Failure) -> String {
    guard let character = path.unicodeScalars.first(where: { "?#".unicodeScalars.contains($0) || $0.value < 0x20 })
    else { return path }
    let name = character.value < 0x20 ? "a control character" : "\(character)"
    throw Failure(
      .usage, "--folder: a folder whose path has \(name) cannot hold the gate's store",
      hint: "name another folder with --folder")
  }

  private static func absolute(_ path: String) -> String {
    path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }

  /// The configuration as a file that a developer can read, and copy as a start for a real gate.
  private func configuration(in folder: AuthorityFolder, _ authority: TestAuthority, appID: String) -> String {
    let parts = appID.split(separator: ".", maxSplits: 1)
    var text = """
      version: 1
      listen: { address: \(quoted(listenAddress)), port: \(port) }
      tls: { cert_file: \(quoted(folder.serverCertificatePath)), key_file: \(quoted(folder.serverKeyPath)) }
      app_attest:
        apps:
          - { team_id: \(quoted(String(parts[0]))), bundle_id: \(quoted(String(parts.last ?? ""))), \
      environments: [development]\(risk(in: folder)) }
      \(devices(of: folder, authority))
      routes: [{ path: /, upstream: \(quoted(chosenUpstream)), forward: \(quoted(chosenForwarding)) }]
      store: { url: \(quoted("sqlite://" + folder.path + "/state.db")) }
      # attest load opens many sockets with one device. Other gates: 16.
      limits: { per_key: { sessions: off } }

      """
    if let socket = DevFolder(path: folder.path).adminSocket {
      text += "admin: { listen: \(quoted("unix:" + socket)) }\n"
    }
    if let clientCA { text += "debug_mtls: { client_ca_file: \(quoted(Self.absolute(clientCA))) }\n" }
    return text
  }

  /// The policy of a demonstration: a device that attested more than ten keys is refused.
  private func risk(in folder: AuthorityFolder) -> String {
    guard let dataService else { return "" }
    let server = dataService.hasSuffix("/") ? String(dataService.dropLast()) : dataService
    return ", risk: { key_file: \(quoted(folder.developerKeyPath)), key_id: SIMULATED1, threshold: 10, action: refuse, "
      + "endpoint: \(quoted(server + DataService.path)) }"
  }

  /// The policy of a demonstration for Android, where the gate itself counts: together with that of iOS.
  private var androidRisk: String { dataService == nil ? "" : ", risk: { threshold: 10, action: refuse }" }

  private func write(_ text: String, to path: String) throws(Failure) {
    do {
      try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
    } catch {
      throw Failure(
        .cannotCreate, "cannot write \(path)", hint: "choose another folder with --folder")
    }
  }

  /// The further lines of `app_attest`: the app's Android edition, and the roots of simulated devices.
  private func devices(of folder: AuthorityFolder, _ authority: TestAuthority) -> String {
    guard !real else { return "  # Real devices: Apple's roots." }
    let app = authority.androidApp
    return """
          - { platform: android, package: \(quoted(app.package)), signers: [\(quoted(Hex.encode(app.signer)))]\(androidRisk) }
        android: { status_list: \(quoted(folder.androidStatusListPath)), refresh: 1s, max_age: 365d }
        trust:
          attestation_root_file: \(quoted(folder.attestationRootPath))
          receipt_root_file: \(quoted(folder.receiptRootPath))
          android_root_file: \(quoted(folder.androidRootPath))
      """
  }

  /// Returns a double-quoted YAML scalar. JSON string escapes are valid in YAML.
  private func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
