internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import FoundationEssentials
internal import GateRuntime
internal import Settings

/// The options that select a command's store and output format.
struct StoreTarget: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: """
      The gate's configuration file (YAML), which names the store (default: SALLYPORT_CONFIG, then \
      /etc/sallyport/sallyport.yaml).
      """)
  var config: String?

  @Option(
    name: .customLong("store"),
    help: "The store itself: sqlite:///path or postgres://user@host/database (password: PGPASSFILE).")
  var url: String?

  @Flag(help: "Print the result as one JSON object.")
  var json = false

  func validate() throws {
    if config != nil, url != nil { throw ValidationError("name one store: -c FILE or --store URL") }
  }

  /// Returns the selected store, and the challenge settings of its gate if the configuration is known.
  ///
  /// Faults in other parts of the configuration are ignored. A backup matters most when something is wrong, and the
  /// operator may lack permission to read the gate's keys.
  func resolve() throws(Failure) -> StorePlaces {
    if let url { return StorePlaces(store: try .named(url)) }
    let file = config ?? ConfigurationSearch.ofProcess.file
    // Without a configuration the store is never a guess: a restore would write to it.
    guard file != nil || ProcessInfo.processInfo.environment["SALLYPORT_STORE__URL"] != nil else {
      throw Failure(
        .usage, "the store is not known",
        hint: "name it: --store URL, or -c FILE with the gate's configuration; \(ConfigurationSearch.ofProcess.advice)")
    }
    do throws(ConfigurationErrors) {
      return try SettingsLoader(file: file).loadStorePlaces()
    } catch {
      throw Failure(error)
    }
  }

  /// Prints the result: as text, or with `--json` as one line of JSON.
  func say(_ text: @autoclosure () -> String, _ object: @autoclosure () -> [String: JSONValue]) {
    Console.print(json ? JSONText.encoding(JSONValue.object(object())) : text())
  }
}

extension Failure {
  static func noStore(at place: String) -> Self {
    Self(
      .noInput, "\(place): no store exists here",
      hint: "start a gate to create it, or run `sallyport store migrate`")
  }

  /// Describes a failure of the store at `place`.
  init(_ error: StoreError, of place: String) {
    self.init(.unavailable, "\(place): \(error)", hint: error.advice)
  }
}
