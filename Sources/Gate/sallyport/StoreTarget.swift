internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import FoundationEssentials
internal import GateRuntime
internal import Settings

/// The store that a command is about, and how it answers.
struct StoreTarget: ParsableArguments {
  @Option(name: [.short, .customLong("config")], help: "The gate's configuration file (YAML), which names the store.")
  var config: String?

  @Option(
    name: .customLong("store"),
    help: "The store itself: sqlite:///path or postgres://user@host/database (password: PGPASSFILE).")
  var url: String?

  @Flag(help: "Print one JSON object.")
  var json = false

  func validate() throws {
    guard (config == nil) != (url == nil) else { throw ValidationError("name the store: -c FILE or --store URL") }
  }

  /// The store that is named, and how its gate makes nonces as far as that is known.
  ///
  /// Faults elsewhere in the configuration are not its matter: a backup is wanted most when something is wrong, and who
  /// makes it may not read the gate's keys.
  func resolve() throws(SallyportError) -> StorePlaces {
    if let url { return StorePlaces(store: try .named(url)) }
    do throws(ConfigurationFaults) {
      return try SettingsLoader(file: config).loadStorePlaces()
    } catch {
      throw SallyportError(.configuration, lines: error.description)
    }
  }

  /// Says how it ended: as text for people, or as one line of JSON.
  func say(_ text: @autoclosure () -> String, _ object: @autoclosure () -> [String: JSONValue]) {
    Console.print(json ? JSONValue.object(object()).line : text())
  }
}

extension JSONValue {
  /// The text on one line.
  var line: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Texts, numbers and booleans can always be encoded.
    return (try? encoder.encode(self)).map { TerminalText.escaped(json: String(decoding: $0, as: UTF8.self)) } ?? "{}"
  }
}

extension SallyportError {
  static func noStore(at place: String) -> Self {
    Self(
      .noInput, error: "\(place): there is no store",
      hint: "a gate makes it when it starts, `sallyport store migrate` makes it now")
  }

  /// A fault of the store at `place`.
  init(_ error: StoreError, of place: String) {
    self.init(.unavailable, error: "\(place): \(error)", hint: error.advice)
  }
}
