internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import GateService

/// Shows why clients are refused.
struct RefusalsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refusals",
    abstract: "Shows the last refusals of a running gate: why a client cannot connect.",
    discussion: """
      A gate remembers its last 1000 refusals since its start, with the rule that failed. The log has all of them. \
      Prints a table on a terminal, otherwise tab-separated lines: time, code, rule, detail, what the device should do, \
      key, app, client, request id, path. With --json, one line of JSON per refusal. The newest are first; with \
      --follow, the newest are last. The gate needs an admin server: admin.listen.

      Example: why the device with this key is refused, as it happens

        sallyport refusals --key Kq3bX0rJ --follow
      """)

  @OptionGroup var configuration: ConfigurationOption

  @Option(
    help: "Only refusals of this key: its hash, 6 or more characters of it, or the device's key id.",
    transform: KeyArgument.name)
  var key: KeyName?

  @Option(help: "Only refusals of this app, if the gate knew it.")
  var app: String?

  @Option(help: "Only refusals of this client address.")
  var address: String?

  @Option(help: "Only refusals with this code, as the client gets it in X-Attest-Error.")
  var code: String?

  @Option(help: "Only the refusal of this request id, or of ids that begin with it.")
  var request: String?

  @Option(help: "Only refusals with this text in any field.")
  var search: String?

  @Option(help: "The maximum number of refusals; with --follow, of earlier ones.")
  var limit: Int?

  @Flag(
    name: [.short, .long],
    help: "Wait for further refusals and print them, until SIGINT. Waits for a gate that restarts.")
  var follow = false

  @Flag(help: "Print each refusal as one line of JSON.")
  var json = false

  /// The pause between two requests of `--follow`.
  private static let pause = Duration.seconds(1)

  func validate() throws {
    guard limit ?? 1 > 0 else { throw ValidationError("--limit must be 1 or more") }
  }

  func run() async throws {
    let client = try await configuration.client()
    var table = Table(
      [
        .init(heading: "TIME"), .init(heading: "CODE"), .init(heading: "RULE", loss: .middle),
        .init(heading: "DEVICE SHOULD", loss: .all(2)), .init(heading: "KEY"), .init(heading: "APP", loss: .all(1)),
        .init(heading: "CLIENT"), .init(heading: "REQUEST", loss: .all(3)),
      ], whenEmpty: "no such refusals")
    var (found, newest) = try await refusals(at: client, since: nil, limit: limit ?? .max)
    print(follow ? found.reversed() : found, in: &table)
    guard follow else {
      if !json { table.end() }
      return
    }
    var isReported = false
    while true {
      try await Task.sleep(for: Self.pause)
      do throws(Failure) {
        (found, newest) = try await refusals(at: client, since: newest, limit: .max)
      } catch {
        // A gate that restarts: it has the refusals since then, and the mark stays valid.
        guard error.status == .unavailable else { throw error }
        if !isReported { Console.note("waiting for the gate: \(error.message)") }
        isReported = true
        continue
      }
      isReported = false
      print(found.reversed(), in: &table)
    }
  }

  /// Returns the refusals after the mark `since`, the newest first, and the mark of this answer.
  private func refusals(
    at client: AdminClient, since: String?, limit: Int
  ) async throws(Failure) -> (found: [RefusalDescription], newest: String) {
    var found: [RefusalDescription] = []
    var (cursor, newest): (String?, String?)
    repeat {
      let query = Query(
        ("limit", "\(min(limit - found.count, 200))"), ("after", cursor), ("since", since), ("key", key?.text),
        ("app", app), ("address", address), ("code", code), ("request", request), ("search", search))
      let page = try await client.send("GET", "/v1/refusals" + query.text, RefusalListing.self)
      found += page.refusals
      // Refusals during the later pages belong to the next answer.
      newest = newest ?? page.newest
      cursor = page.next
    } while cursor != nil && found.count < limit
    return (found, newest ?? "0")
  }

  private func print(_ refusals: [RefusalDescription], in table: inout Table) {
    guard !json else {
      for refusal in refusals { Console.print(JSONText.encoding(refusal)) }
      return
    }
    let now = Timestamp.now()
    let rows = refusals.map { refusal -> [String] in
      let rule = [refusal.step, refusal.detail].compactMap(\.self)
      let shown = table.isForPerson ? [rule.joined(separator: ": ")] : [refusal.step, refusal.detail ?? "-"]
      return [table.time(refusal.at, at: now), refusal.code] + shown + [
        refusal.advice ?? "-", refusal.key.map(table.short) ?? "-", refusal.app ?? "-", refusal.address,
        table.short(refusal.requestID),
      ] + (table.isForPerson ? [] : [refusal.path ?? "-"])
    }
    table.print(rows)
  }
}
