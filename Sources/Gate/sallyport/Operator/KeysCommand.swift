internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import GateRuntime
internal import GateService

/// The parent of the commands that manage registered keys.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys",
    abstract: "Lists, explains, revokes, restores, removes and copies registered keys.",
    discussion: """
      Finds the running gate by its admin socket; if no gate runs, works on the store, and gates that share it notice \
      within 2 seconds. Export and import always work on the store.

      Example: which keys of an app are revoked

        sallyport keys list --app AAABBBCCC1.com.example.app --state revoked
      """,
    subcommands: [
      KeysListCommand.self, KeysShowCommand.self, KeysDecisionsCommand.self, KeysRevokeCommand.self,
      KeysRestoreCommand.self,
      KeysRemoveCommand.self, KeysExportCommand.self, KeysImportCommand.self,
    ])
}

struct KeysListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists keys.",
    discussion: """
      Prints a table on a terminal, otherwise tab-separated lines: hash, app, environment, state, counter, last use, \
      registration, risk metric. With --json, one line of JSON per key. The table shortens hashes; every command accepts them so.

      Example: the keys of devices that were not seen for 90 days

        sallyport keys list --unused-since 90d --json

      Example: the keys of devices on which three or more keys were made

        sallyport keys list --risk 3+
      """)

  enum State: String, ExpressibleByArgument, CaseIterable { case active, revoked }
  enum Platform: String, ExpressibleByArgument, CaseIterable { case ios, android }
  /// The orders of `KeyOrder` that are not that of pages without another one.
  enum Order: String, ExpressibleByArgument, CaseIterable {
    case hash = "key"
    case hashDescending = "-key"
  }

  @OptionGroup var options: StoreOptions

  @Option(help: "Only keys of devices of this platform.")
  var platform: Platform?

  @Option(help: "Only keys of this app: TEAMID.bundle.id, or the package of an Android app.")
  var app: String?

  @Option(help: "Only keys in this state.")
  var state: State?

  @Option(
    help: "Only keys neither registered nor used since: 90d, for 90 days before now, or 2026-10-01T00:00:00Z.",
    transform: instant)
  var unusedSince: Timestamp?

  @Option(
    help: "Only keys with this risk metric: 3, 1-3, 3+ (3 or more), or unknown.", transform: riskSelection)
  var risk: RiskFilter?

  @Option(help: "Only keys whose hash starts with this; 6 characters or more.")
  var prefix: String?

  @Option(help: "Sort by the hash: key, or --sort=-key for descending. By default keys are in the order of their ids.")
  var sort: Order?

  @Option(help: "The maximum number of keys.")
  var limit: Int?

  @Flag(help: "Print each key as one line of JSON.")
  var json = false

  func validate() throws {
    guard limit ?? 1 > 0 else { throw ValidationError("--limit must be 1 or more") }
  }

  func run() async throws {
    try await options.withAdminClient { client throws(Failure) in try await list(at: client) }
  }

  private func list(at client: AdminClient) async throws(Failure) {
    let table = Table(
      [
        .init(heading: "KEY"), .init(heading: "APP", loss: .middle), .init(heading: "ENVIRONMENT", loss: .all(2)),
        .init(heading: "STATE"), .init(heading: "COUNTER", loss: .all(3)), .init(heading: "LAST USED"),
        .init(heading: "REGISTERED", loss: .all(1)), .init(heading: "RISK", loss: risk == nil ? .all(4) : .nothing),
      ], whenEmpty: selectsAll ? "no keys yet" : "no such keys")
    try await client.printList(
      KeyListing.self, at: "/v1/keys",
      [
        ("platform", platform?.rawValue), ("app", app), ("state", state?.rawValue),
        ("unused_since", unusedSince?.description), ("prefix", prefix), ("risk", risk?.text), ("sort", sort?.rawValue),
      ], limit: limit, in: json ? nil : table, row: Self.row)
  }

  private var selectsAll: Bool {
    platform == nil && app == nil && state == nil && unusedSince == nil && prefix == nil && risk == nil
  }

  /// Returns the instant that `text` names, either itself or by the time from it until now.
  private static func instant(_ text: String) throws(ValidationError) -> Timestamp {
    if let instant = Timestamp(rfc3339: text) { return instant }
    guard let milliseconds = try? TimeSpan.milliseconds(text) else {
      throw ValidationError("write a duration until now, such as 90d, or an instant, such as 2026-10-01T00:00:00Z")
    }
    return .now().advanced(by: .milliseconds(-milliseconds))
  }

  private static func row(_ key: KeyDescription, in table: Table, at now: Timestamp) -> [String] {
    [
      table.short(key.key), key.app, key.environment, key.state, "\(key.counter)", table.time(key.lastUsedAt, at: now),
      table.time(key.registeredAt, at: now), key.riskText ?? "-",
    ]
  }

  /// A filter that the gate knows too, as it was written.
  struct RiskFilter { let text: String }

  private static func riskSelection(_ text: String) throws(ValidationError) -> RiskFilter {
    guard RiskSelection(text) != nil else { throw ValidationError("write \(RiskSelection.form)") }
    return RiskFilter(text: text)
  }
}

struct KeysShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Shows all details of keys.",
    discussion: """
      Example: show a key from a log line

        sallyport keys show Kq3bX0rJ
      """)

  @OptionGroup var options: StoreOptions
  @OptionGroup var keys: KeyArguments

  func run() async throws {
    try await options.withAdminClient { client throws(Failure) in
      for name in keys.names { keys.print(try await client.send("GET", "/v1/keys/\(name)", KeyDescription.self)) }
    }
  }
}

/// The keys of a command, and how their state is printed.
struct KeyArguments: ParsableArguments {
  @Argument(help: KeyArgument.help, transform: KeyArgument.name)
  var key: [KeyName]

  @Flag(help: "Print each key as one line of JSON.")
  var json = false

  var names: [String] { key.map(\.text) }

  /// An RFC 3339 time in whole seconds, which is all that a person needs.
  static func second(of time: String) -> String { Timestamp(rfc3339: time)?.wholeSecond.description ?? time }

  func print(_ key: KeyDescription) {
    guard !json else {
      Console.print(JSONText.encoding(key))
      return
    }
    let fields: [(String, String?)] = [
      ("key", key.key), ("key id", key.keyID), ("platform", key.platform), ("app", key.app),
      ("environment", key.environment),
      ("state", key.state), ("registered", Self.second(of: key.registeredAt)),
      ("last used", key.lastUsedAt.map(Self.second) ?? "never"), ("revoked", key.revokedAt.map(Self.second)),
      ("counter", key.platform == "ios" ? "\(key.counter)" : nil),
      ("category", key.category),
      ("security level", key.securityLevel), ("boot state", key.bootState), ("patch level", key.patchLevel),
      ("provisioning", key.provisioning), ("risk", key.riskText), ("risk at", key.riskAt.map(Self.second)),
      ("bundle version", key.bundleVersion), ("public key", key.publicKey),
      ("open sessions", key.sessions.map(String.init)),
    ]
    Console.print(
      fields.compactMap { name, value in
        value.map { name + String(repeating: " ", count: 16 - name.count) + TerminalText.printable($0) }
      }.joined(separator: "\n"))
  }
}

/// A URL query string.
struct Query {
  let text: String

  init(_ parameters: (name: String, value: String?)...) { self.init(parameters) }

  /// Omits parameters without a value.
  init(_ parameters: [(name: String, value: String?)]) {
    let parts = parameters.compactMap { name, value in value.map { "\(name)=\(Self.encoded($0))" } }
    text = parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
  }

  private static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        String(Unicode.Scalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }
}
