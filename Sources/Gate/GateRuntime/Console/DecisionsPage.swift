internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// The stored decisions about a key: why its device could not connect yesterday.
struct DecisionsPage {
  let key: KeyName
  let query: ConsoleForm
  let now: Timestamp

  func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = query["after"]
    let answer = try await Self.listing(of: key.text, after: after, gate)
    let hash = answer.value.key
    let path = Self.path(of: hash)
    let table = Self.table(answer.value.decisions, at: now)
    return ConsolePage(
      "Decisions about key \(hash.prefix(12))", command: Self.command(for: hash, gate),
      head: #"<p><a href="/keys/\#(hash)">The key</a></p>"#,
      content: "\(table.markup)\(ConsoleParts.pages(path, [], after: after, next: answer.value.next))",
      isLive: after == nil, table: table, json: answer.json)
  }

  static func path(of hash: String) -> String { "/keys/\(hash)/decisions" }

  static func command(for hash: String, _ gate: ConsoleLink) -> String {
    gate.line(["keys", "decisions"], operand: hash)
  }

  static func listing(
    of key: String, after: String? = nil, _ gate: ConsoleLink
  ) async throws(ConsoleFault) -> ConsoleLink.Answer<DecisionListing> {
    let fields = [("limit", "\(ConsoleParts.rows)"), ("after", after)] as [(name: String, value: String?)]
    return try await gate.get("/v1/keys/\(key)/decisions" + ConsoleForm.query(fields), DecisionListing.self)
  }

  static func table(_ decisions: [DecisionDescription], at now: Timestamp) -> ConsoleTable {
    ConsoleTable(
      "Decisions, the newest first",
      ["time", "decision", "rule that failed", "the device should", "count", "app", "client", "request"],
      decisions.map { row($0, at: now) },
      whenEmpty: "No decisions are stored. The gate stores them within seconds, unless store.keep_decisions is off.")
  }

  private static func row(_ decision: DecisionDescription, at now: Timestamp) -> [ConsoleTable.Cell] {
    let since: HTML =
      if let since = decision.since { "<small>since \(Shown.time(since, at: now))</small>" } else { .nothing }
    return [
      .init(decision.at, Shown.time(decision.at, at: now)),
      .init(decision.code ?? decision.outcome.rawValue, outcome(decision)),
      rule(decision), .init(advice(decision)), .init("\(decision.count)", "<span>\(decision.count)\(since)</span>"),
      .init(decision.app), .init(decision.address), ConsoleParts.code(decision.requestID, length: 8),
    ]
  }

  private static func outcome(_ decision: DecisionDescription) -> HTML {
    guard let code = decision.code else { return #"<span class="pill good">admitted</span>"# }
    let status = decision.status.map { "\($0)" } ?? "admitted: monitor mode"
    let proof: HTML = decision.verified ? .nothing : "<small>key not proved</small>"
    return "<span><code>\(Shown.text(code))</code> <span class=\"quiet\">\(status)</span>\(proof)</span>"
  }

  private static func rule(_ decision: DecisionDescription) -> ConsoleTable.Cell {
    guard let step = decision.step else { return ConsoleTable.Cell(nil as String?) }
    let small: HTML = if let detail = decision.detail { "<small>\(Shown.text(detail))</small>" } else { .nothing }
    return ConsoleTable.Cell(
      [step, decision.detail].compactMap(\.self).joined(separator: ": "),
      "<span><code>\(Shown.text(step))</code>\(small)</span>")
  }

  private static func advice(_ decision: DecisionDescription) -> String? {
    decision.code == nil ? nil : decision.advice ?? "see the log of the server"
  }
}
