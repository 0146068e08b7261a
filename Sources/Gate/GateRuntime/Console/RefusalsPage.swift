internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// The last refusals: why a client cannot connect.
struct RefusalsPage {
  let query: ConsoleForm
  let now: Timestamp

  private static let fields = [
    ("search", "Search"), ("key", "Key"), ("app", "App"), ("address", "Client address"), ("code", "Code"),
    ("request", "Request id"),
  ]

  private var filters: [(name: String, value: String?)] {
    Self.fields.map { name, _ in (name, name == "key" ? key : query[name]) }
  }

  /// A hash also for the key id of a device.
  private var key: String? { query["key"].map { KeyName(any: $0)?.text ?? $0 } }

  func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = query["after"]
    let target =
      "/v1/refusals" + ConsoleForm.query(filters + [("limit", "\(ConsoleParts.rows)"), ("after", after)])
    let answer = try await gate.get(target, RefusalListing.self)
    let table = Self.table(answer.value.refusals, at: now)
    let form = ConsoleParts.filters(
      "/refusals", Self.fields.map { ConsoleParts.field($0.0, $0.1, query, isSearch: $0.0 == "search") })
    return ConsolePage(
      "Refusals", command: command(gate), head: form,
      content: "\(table.markup)\(ConsoleParts.pages("/refusals", filters, after: after, next: answer.value.next))",
      isLive: after == nil, table: table, json: answer.json)
  }

  private func command(_ gate: ConsoleLink) -> String {
    let options = filters.flatMap { ConsoleParts.option("--\($0.name)", $0.value) }
    return gate.line(["refusals"] + options)
  }

  static func table(_ refusals: [RefusalDescription], at now: Timestamp) -> ConsoleTable {
    ConsoleTable(
      "Refusals, the newest first",
      ["time", "code", "rule that failed", "the device should", "key", "app", "client", "request"],
      refusals.map { row($0, at: now) },
      whenEmpty: "No refusals that match. The gate remembers the last 1000 since its start.")
  }

  private static func row(_ refusal: RefusalDescription, at now: Timestamp) -> [ConsoleTable.Cell] {
    let status = refusal.status.map { "\($0)" } ?? "admitted: monitor mode"
    let rule = [refusal.step, refusal.detail].compactMap(\.self).joined(separator: ": ")
    let small: HTML = if let detail = refusal.detail { "<small>\(Shown.text(detail))</small>" } else { .nothing }
    let path: HTML = if let path = refusal.path { "<small>\(Shown.text(path))</small>" } else { .nothing }
    return [
      .init(refusal.at, Shown.time(refusal.at, at: now)),
      .init(
        refusal.code,
        """
        <span><a href="/refusals?code=\(ConsoleForm.encoded(refusal.code))"><code>\(refusal.code)</code></a> \
        <span class="quiet">\(status)</span></span>
        """),
      .init(rule, #"<span title="\#(Shown.text(refusal.text))"><code>\#(refusal.step)</code>\#(small)</span>"#),
      .init(refusal.advice ?? "see the log of the server"), Parts.key(refusal.key), .init(refusal.app),
      .init(
        refusal.address,
        #"<span><a class="nowrap" href="/refusals?address=\#(ConsoleForm.encoded(refusal.address))">\#(refusal.address)</a>\#(path)</span>"#
      ),
      ConsoleParts.code(refusal.requestID, length: 8),
    ]
  }
}
