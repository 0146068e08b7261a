internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import GateService
internal import Settings

/// The parent of the commands that manage open sessions.
struct SessionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions",
    abstract: "Lists and closes the open sessions of a running gate.",
    discussion: """
      Each gate knows only its own sessions. The gate needs an admin server: admin.listen.

      Example:

        sallyport sessions list
      """,
    subcommands: [SessionsListCommand.self, SessionsCloseCommand.self])
}

struct SessionsListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists open sessions, by default the oldest first.",
    discussion: """
      Prints a table on a terminal, otherwise tab-separated lines: id, key, app, route, method, opening time, age in \
      seconds, client. With --json, one line of JSON per session.

      Example: the sessions of one key

        sallyport sessions list --key Kq3bX0rJ
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Option(
    help: "Only sessions of this key: its hash, 6 or more characters of it, or the device's key id.",
    transform: KeyArgument.name)
  var key: KeyName?

  @Option(
    help: "Sort by opened, key, app, route, method or client; with a dash in front descending, as in --sort=-opened.")
  var sort: String?

  @Flag(help: "Print each session as one line of JSON.")
  var json = false

  func validate() throws {
    guard sort.map({ SessionOrder($0) != nil }) ?? true else {
      throw ValidationError("--sort must be one of \(SessionOrder.texts.joined(separator: ", "))")
    }
  }

  func run() async throws {
    let client = try await configuration.client()
    let table = Table(
      [
        .init(heading: "SESSION"), .init(heading: "KEY"), .init(heading: "APP", loss: .middle),
        .init(heading: "ROUTE", loss: .middle), .init(heading: "METHOD", loss: .all(2)), .init(heading: "OPENED"),
        .init(heading: "CLIENT", loss: .all(1)),
      ], whenEmpty: key == nil ? "no open sessions" : "no open sessions of this key")
    try await client.printList(
      SessionListing.self, at: "/v1/sessions", [("key", key?.text), ("sort", sort)], in: json ? nil : table,
      row: Self.row)
  }

  private static func row(_ session: SessionDescription, in table: Table, at now: Timestamp) -> [String] {
    // The opening time for a person is the age.
    [
      table.short(session.id), session.key.map(table.short) ?? "-", session.app ?? "-", session.route, session.method,
      table.time(session.openedAt, at: now),
    ] + (table.isForPerson ? [] : ["\(session.ageSeconds)"]) + [session.address]
  }
}

struct SessionsCloseCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "close",
    abstract: "Closes sessions with 1001.",
    discussion: """
      The device can connect again at once. To block it, revoke its key. An id of no open session, or of several, \
      does not keep the others open; the exit code is then 66 or 64.

      Example:

        sallyport sessions close 5f1d0c7e
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Argument(
    help: "The session ids, or 6 or more characters of them: the request ids of the requests that opened them.")
  var id: [String]

  @Flag(help: "Print each session as one line of JSON.")
  var json = false

  func validate() throws {
    for id in id
    where !(SessionResource.leastLength...32).contains(id.utf8.count)
      || !id.utf8.allSatisfy({ Self.digits.contains($0) })
    {
      throw ValidationError(
        "\"\(TerminalText.printable(id))\" is not a session id: 32 hex digits, or 6 or more of them")
    }
  }

  private static let digits = Array("0123456789abcdef".utf8)

  func run() async throws {
    let client = try await configuration.client()
    var failures: [Failure] = []
    var closed: Set<String> = []
    for id in id {
      do throws(Failure) {
        let closing = try await client.send("DELETE", "/v1/sessions/\(id)", SessionClosing.self)
        guard closed.insert(closing.id).inserted else { continue }
        Console.print(json ? JSONText.encoding(closing) : "\(closing.id)\tclosed")
      } catch {
        // Two of the ids may be of one session.
        if error.status == .noInput, closed.contains(where: { $0.hasPrefix(id) }) { continue }
        failures.append(error)
        // Other failures are of the gate, and not of the id.
        if error.status != .noInput && error.status != .usage { break }
      }
    }
    if let last = failures.last { throw Failure(last.status, failures.flatMap(\.messages)) }
  }
}
