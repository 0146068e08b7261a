internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// The open sessions of the gate.
struct SessionsPage {
  let query: ConsoleForm
  let now: Timestamp
  let viewer: ConsoleViewer

  private var key: String? { query["key"].map { KeyName(any: $0)?.text ?? $0 } }

  func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = query["after"]
    let filters: [(name: String, value: String?)] = [("key", key)]
    let sort = ConsoleSort("/sessions", Self.sorted, standard: "opened", query, keeping: filters)
    let sorted = filters + [("sort", sort.choice)]
    let target = "/v1/sessions" + ConsoleForm.query(sorted + [("limit", "\(ConsoleParts.rows)"), ("after", after)])
    let answer = try await gate.get(target, SessionListing.self)
    let back = "/sessions" + ConsoleForm.query(sorted)
    let table = table(answer.value.sessions, gate, back: back, sort: sort)
    return ConsolePage(
      "Sessions",
      command: gate.line(
        ["sessions", "list"] + ConsoleParts.option("--key", key) + ConsoleParts.option("--sort", sort.choice)),
      head: ConsoleParts.filters(
        "/sessions", [ConsoleParts.field("key", "Key: hash, its beginning, or key id", query, isSearch: true)],
        sort: sort),
      content: "\(table.markup)\(ConsoleParts.pages("/sessions", sorted, after: after, next: answer.value.next))",
      isLive: true, acts: [GateActs.closeSession], table: table, json: answer.json)
  }

  /// The headings that can be sorted, and the names of their columns.
  private static let sorted: [(heading: String, name: String)] = SessionOrder.Column.allCases.map {
    ($0.rawValue, $0.rawValue)
  }

  func table(
    _ sessions: [SessionDescription], _ gate: ConsoleLink, back: String, sort: ConsoleSort? = nil
  ) -> ConsoleTable {
    let closes = viewer.role >= GateActs.closeSession.role
    return ConsoleTable(
      sort?.choice == nil ? "Open sessions, the oldest first" : "Open sessions",
      ["session", "key", "app", "route", "method", "opened", "client"] + (closes ? [""] : []),
      sessions.map { session in
        let act = viewer.form(
          GateActs.closeSession, "Close", values: [("session", session.id)], back: back,
          question: "The session \(session.id.prefix(8)) is closed with 1001. The device can connect again at once. "
            + "The same: \(gate.line(["sessions", "close"], operand: session.id))")
        return [
          ConsoleParts.code(session.id, length: 8), Parts.key(session.key), .init(session.app), .init(session.route),
          .init(session.method), .init(session.openedAt, Shown.time(session.openedAt, at: now)),
          .init(session.address),
        ] + (closes ? [.init("", act)] : [])
      },
      whenEmpty: "No open sessions that match.", sort: sort)
  }
}
