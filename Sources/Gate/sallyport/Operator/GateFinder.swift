internal import Commands
internal import ConfigurationEngine
internal import FoundationEssentials
internal import GateRuntime
internal import Glibc
internal import Settings

/// Finds the running gate of a command that names no configuration.
///
/// It looks at the admin server of `/etc/sallyport/sallyport.yaml` and the environment, at the standard socket, and at
/// the development gate in the user's data folder. A development gate in another folder is found by its configuration.
/// `SALLYPORT_ROOT` moves the first two places.
struct GateFinder {
  /// The standard socket of a gate, which the shipped configuration names.
  static func standardSocket(_ environment: [String: String]) -> String {
    StandardPlaces.path("/run/sallyport/admin.sock", in: environment)
  }

  /// A running gate.
  struct Found {
    let client: AdminClient
    /// Its store; `nil` if only its socket is known.
    let store: GateSettings.Store?
    /// How its admin server is named in errors.
    let name: String
  }

  /// A place where no gate was found, and why.
  struct Tried {
    let place: String
    let reason: String
    /// Whether a gate may run there that this user must not ask.
    var isClosed = false

    var text: String { "\(place) (\(reason))" }
  }

  private var found: [Found] = []
  private(set) var tried: [Tried] = []
  /// The identities of the servers that were tried.
  private var servers: Set<String> = []
  private let environment: [String: String]
  private let search: ConfigurationSearch

  /// Asks every place. Returns when each has answered.
  static func search(_ environment: [String: String] = ProcessInfo.processInfo.environment) async -> GateFinder {
    var finder = GateFinder(environment)
    await finder.tryConfiguration()
    await finder.tryServer(.init(address: .unix(path: standardSocket(environment))), store: nil)
    await finder.tryDevelopmentGate()
    return finder
  }

  private init(_ environment: [String: String]) {
    self.environment = environment
    search = ConfigurationSearch(environment: environment)
  }

  /// The one gate that runs; `nil` if none does.
  ///
  /// - Throws: `.usage` if there are several.
  func gate() throws(Failure) -> Found? {
    guard found.count > 1 else { return found.first }
    throw Failure(
      .usage, "several gates are running: \(found.map(\.name).joined(separator: ", "))",
      hint: "name one: -c with its configuration, or SALLYPORT_ADMIN__LISTEN with one of these addresses")
  }

  /// The error of a command that needs a running gate.
  var failure: Failure {
    let places = tried.map(\.text).joined(separator: ", ")
    guard let closed = tried.first(where: \.isClosed) else {
      return Failure(
        .unavailable, "no running gate was found; tried \(places)",
        hint: "start one: sallyport run, or sallyport dev; name a gate elsewhere with -c FILE or SALLYPORT_CONFIG")
    }
    return Failure(
      .unavailable, "no gate could be asked; tried \(places)",
      hint: "run the command as the user of the gate at \(closed.place), for example with sudo -u sallyport")
  }

  // MARK: Places

  private mutating func tryConfiguration() async {
    let file = search.standardFile
    let loader = SettingsLoader(file: search.hasStandardFile ? file : nil, environment: environment)
    do throws(ConfigurationErrors) {
      // A fault of the store does not keep an operator from a gate that runs.
      if let admin = try loader.loadAdmin() { return await tryServer(admin, store: try? loader.loadPlaces().store) }
      tried.append(Tried(place: file, reason: search.hasStandardFile ? "names no admin server" : "does not exist"))
    } catch {
      // A fault must not keep an operator from a gate that runs.
      let reason = error.faults.first.map { $0.reason } ?? "invalid"
      tried.append(Tried(place: file, reason: reason))
    }
  }

  private mutating func tryDevelopmentGate() async {
    guard let folder = DevFolder.standard(environment), let socket = folder.adminSocket else { return }
    let places = try? SettingsLoader(file: folder.configuration, environment: [:], workingDirectory: folder.path)
      .loadPlaces()
    await tryServer(.init(address: .unix(path: socket)), store: places?.store)
  }

  private mutating func tryServer(_ admin: GateSettings.Admin, store: GateSettings.Store?) async {
    let name = if case .unix(let path) = admin.address { path } else { admin.address.text }
    guard servers.insert(Self.identity(of: admin.address) ?? name).inserted else { return }
    do throws(Failure) {
      if let client = try await AdminClient.gate(at: admin) {
        found.append(Found(client: client, store: store, name: admin.address.text))
      } else {
        tried.append(Tried(place: name, reason: "no gate listens"))
      }
    } catch {
      tried.append(Tried(place: name, reason: error.cause ?? error.message, isClosed: true))
    }
  }

  /// Identifies the file of a socket, to which several paths can lead: `/var/run` is `/run`. `nil` without a file.
  private static func identity(of address: GateSettings.Admin.Address) -> String? {
    var status = stat()
    guard case .unix(let path) = address, stat(path, &status) == 0 else { return nil }
    return "\(status.st_dev):\(status.st_ino)"
  }
}
