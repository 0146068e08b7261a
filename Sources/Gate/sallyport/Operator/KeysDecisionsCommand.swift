internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import GateService

struct KeysDecisionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "decisions",
    abstract: "Shows the stored decisions about a key: why its device could not connect yesterday.",
    discussion: """
      The store has the decisions of all gates that share it, as long as store.keep_decisions says. Prints a table on a \
      terminal, otherwise tab-separated lines: time, outcome, code, rule, detail, what the device should do, count, \
      client, request id. With --json, one line of JSON per decision. The newest are first. A refusal that did not prove \
      the key is not verified: any client can send such a request. Equal ones are counted.

      Example: the last decisions about a key

        sallyport keys decisions Kq3bX0rJ --limit 20
      """)

  @OptionGroup var options: StoreOptions

  @Argument(help: KeyArgument.help, transform: KeyArgument.name)
  var key: KeyName

  @Option(help: "The maximum number of decisions.")
  var limit: Int?

  @Flag(help: "Print each decision as one line of JSON.")
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
        .init(heading: "TIME"), .init(heading: "DECISION"), .init(heading: "RULE", loss: .middle),
        .init(heading: "DEVICE SHOULD", loss: .all(2)), .init(heading: "COUNT", loss: .all(1)),
        .init(heading: "CLIENT"), .init(heading: "REQUEST", loss: .all(3)),
      ], whenEmpty: "no stored decisions about this key; store.keep_decisions may be off")
    try await client.printList(
      DecisionListing.self, at: "/v1/keys/\(key.text)/decisions", limit: limit, in: json ? nil : table, row: Self.row)
  }

  private static func row(_ decision: DecisionDescription, in table: Table, at now: Timestamp) -> [String] {
    let ending = [
      decision.advice ?? "-", "\(decision.count)", decision.address, table.short(decision.requestID),
    ]
    let time = table.time(decision.at, at: now)
    guard table.isForPerson else {
      return [time, decision.outcome.rawValue, decision.code ?? "-", decision.step ?? "-", decision.detail ?? "-"]
        + ending
    }
    let rule = [decision.step, decision.detail].compactMap(\.self).joined(separator: ": ")
    return [time, decision.code ?? decision.outcome.rawValue, rule.isEmpty ? "-" : rule] + ending
  }
}
