internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import FoundationEssentials
internal import GateRuntime
internal import GateService
internal import Glibc
internal import Settings

/// The option that selects a gate's configuration.
struct ConfigurationOption: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: "The gate's configuration file (YAML; default: SALLYPORT_CONFIG, otherwise the gate that is running).")
  var config: String?

  private static let adminVariable = "SALLYPORT_ADMIN__LISTEN"
  /// The address of an admin server that a variable names.
  private var namedAddress: String? { ProcessInfo.processInfo.environment[Self.adminVariable] }

  /// Whether the user names a gate: by its configuration, or by the address of its admin server. Then no other gate is
  /// asked.
  private var namesGate: Bool { file != nil || namedAddress != nil }

  /// The options with which a command that is shown to be copied asks the same gate; empty if the user names no file.
  var shownOptions: [String] { file.map { ["-c", ShownPath.absolute($0)] } ?? [] }

  /// The variables with which a command that is shown to be copied asks the same gate.
  var shownVariables: [String] {
    StandardPlaces.shownVariables(in: ProcessInfo.processInfo.environment)
      + (namedAddress.map { ["\(Self.adminVariable)=\($0)"] } ?? [])
  }

  /// The configuration file of a service of this program: the named one, otherwise the standard one if it exists.
  var servedFile: String? { file ?? ConfigurationSearch.ofProcess.file }

  private var file: String? { config ?? ConfigurationSearch.ofProcess.namedFile }

  /// The places of the named configuration, or of the one that is found.
  fileprivate func places() throws(Failure) -> OperatorPlaces {
    try reading { loader throws(ConfigurationErrors) in try loader.loadPlaces() }
  }

  /// The admin server of the named configuration, or of the one that is found. The store may be faulty, or have a
  /// password that this user cannot read: the gate is asked.
  private func admin() throws(Failure) -> GateSettings.Admin? {
    try reading { loader throws(ConfigurationErrors) in try loader.loadAdmin() }
  }

  private func reading<Part>(
    _ read: (SettingsLoader) throws(ConfigurationErrors) -> Part
  ) throws(Failure) -> Part {
    let file = file ?? ConfigurationSearch.ofProcess.file
    do throws(ConfigurationErrors) {
      return try read(SettingsLoader(file: file))
    } catch {
      let hasHint = error.faults.contains { $0.hint != nil }
      throw Failure(
        error, hint: hasHint ? nil : "name the gate's configuration with -c FILE; keys commands can use --store URL")
    }
  }

  /// Whether to ask an admin server: the configuration has one, or no process is named that could get a signal instead.
  func namesAdminServer(or signal: SignalOption) throws(Failure) -> Bool {
    if signal.process == nil { return true }
    return try admin() != nil
  }

  /// Connects to the admin server of the gate that runs with the configuration, or of the one gate that runs.
  func client() async throws(Failure) -> AdminClient {
    guard namesGate else {
      let finder = await GateFinder.search()
      guard let gate = try finder.gate() else { throw finder.failure }
      return gate.client
    }
    guard let admin = try admin() else {
      throw Failure(
        .configuration, "the configuration has no admin server",
        hint: "name the gate's configuration with -c FILE; add admin: { listen: \"unix:/run/sallyport/admin.sock\" }")
    }
    guard let client = try await AdminClient.gate(at: admin) else {
      throw Failure(
        .unavailable, "no gate is running at \(admin.address.text)",
        hint:
          "start it: sallyport run -c FILE; if admin.listen changed since the start, use SIGHUP or SIGTERM instead"
      )
    }
    return client
  }

  /// Connects to the gate as `client()` does, for a command that changes it. A gate that the user has not named is
  /// named on standard error, and on a terminal the user is asked unless `isConfirmed`.
  ///
  /// - Parameter act: What the command does to the gate, as in `Drain`.
  func clientToChange(_ act: String, isConfirmed: Bool) async throws(Failure) -> AdminClient {
    guard !namesGate else { return try await client() }
    let finder = await GateFinder.search()
    guard let gate = try finder.gate() else { throw finder.failure }
    let status = try await gate.client.send("GET", "/v1/status", GateStatus.self)
    let process = status.process.map { ", process \($0)" } ?? ""
    let file = status.configuration.file.map { ", with \($0)" } ?? ""
    let description = TerminalText.printable("the gate at \(gate.name)\(process)\(file)")
    guard !isConfirmed, StandardInput.isTerminal else {
      Console.note(description)
      return gate.client
    }
    guard Console.confirms("\(act) \(description)?") else {
      throw Failure(
        .problems, "nothing was changed", hint: "answer y, or name another gate with -c FILE")
    }
    return gate.client
  }

  /// A gate that runs, or its store.
  fileprivate enum Target {
    /// The gate that runs with the named configuration.
    case named(AdminClient)
    /// The gate that was found, because the user named none.
    case found(GateFinder.Found)
    /// No gate runs. `tried` has the places where one was looked for, if the user named none.
    case store(GateSettings.Store, tried: GateFinder?)
  }

  fileprivate func target() async throws(Failure) -> Target {
    guard namesGate else {
      let finder = await GateFinder.search()
      if let gate = try finder.gate() { return .found(gate) }
      return .store(try places().store, tried: finder)
    }
    // As without a name: a fault of the store does not keep an operator from a gate that runs.
    if let client = try await AdminClient.gate(at: admin()) { return .named(client) }
    return .store(try places().store, tried: nil)
  }
}

/// Selects the keys that a command works on: those of a gate, or those of a store.
struct StoreOptions: ParsableArguments {
  @OptionGroup var configuration: ConfigurationOption

  @Option(
    help: ArgumentHelp(
      "Use this store instead of a gate's: sqlite:///path or postgres://….", valueName: "url"))
  var store: String?

  /// The store of the gate, for commands that never ask the gate itself.
  func storePlace() async throws(Failure) -> GateSettings.Store {
    // The configuration's password belongs to another store.
    if let store { return try .named(store) }
    switch try await configuration.target() {
    case .named: return try configuration.places().store
    case .found(let gate):
      guard let store = gate.store else {
        throw Failure(
          .usage, "the configuration of the gate at \(gate.name) cannot be found or read, so its store is not known",
          hint: "name its configuration with -c FILE, or the store with --store URL")
      }
      return store
    case .store(let store, let tried):
      if let tried, !OpenStore.exists(store) { throw tried.failure }
      return store
    }
  }

  /// Calls `body` with an admin client of the running gate, or of the store if no gate runs.
  func withAdminClient(_ body: (AdminClient) async throws(Failure) -> Void) async throws(Failure) {
    if let store { return try await Self.with(try .named(store), body) }
    switch try await configuration.target() {
    case .named(let client): try await body(client)
    case .found(let gate): try await body(gate.client)
    case .store(let store, let tried):
      if let tried, !OpenStore.exists(store) { throw tried.failure }
      try await Self.with(store, body)
    }
  }

  private static func with(
    _ store: GateSettings.Store, _ body: (AdminClient) async throws(Failure) -> Void
  ) async throws(Failure) {
    try await OpenStore.with(store) { store throws(Failure) in try await body(AdminClient.over(store)) }
  }
}
