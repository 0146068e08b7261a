internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// The registered keys.
struct KeysPage {
  let query: ConsoleForm
  let now: Timestamp

  private static let days = ["7", "30", "90", "365"]

  /// The hash or its beginning, also for the key id of a device.
  private var prefix: String? { query["key"].map { KeyName(any: $0)?.text ?? $0 } }
  private var unusedDays: String? { query["unused"].flatMap { Self.days.contains($0) ? $0 : nil } }

  /// From a metric on, or `unknown`: what the list offers.
  private var risk: String? { query["risk"].flatMap { Self.risks.contains($0) ? $0 : nil } }
  private static let risks = ["2+", "5+", "10+", "100+", "unknown"]

  private var filters: [(name: String, value: String?)] {
    [
      ("key", prefix), ("platform", query["platform"]), ("app", query["app"]), ("state", query["state"]),
      ("risk", risk), ("unused", unusedDays),
    ]
  }

  func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = prefix == nil ? query["after"] : nil
    let since = unusedDays.flatMap { Int64($0) }.map {
      now.advanced(by: .seconds(-86_400 * $0)).wholeSecond.description
    }
    let sort = ConsoleSort("/keys", [("key", "key")], query, keeping: filters)
    let target =
      "/v1/keys"
      + ConsoleForm.query([
        ("limit", "\(ConsoleParts.rows)"), ("after", after), ("prefix", prefix), ("platform", query["platform"]),
        ("app", query["app"]), ("state", query["state"]), ("risk", risk),
        ("unused_since", since), ("sort", sort.choice),
      ])
    let answer = try await gate.get(target, KeyListing.self)
    let table = ConsoleTable(
      "Keys", ["key", "app", "platform", "environment", "state", "risk", "last use", "registered"],
      answer.value.keys.map(row), whenEmpty: "No keys that match.", sort: sort)
    let form = ConsoleParts.filters(
      "/keys",
      [
        ConsoleParts.field("key", "Key: hash, its beginning, or key id", query, isSearch: true),
        ConsoleParts.field("app", "App", query),
        ConsoleParts.choice("platform", "Platform", [("ios", "iOS"), ("android", "Android")], query),
        ConsoleParts.choice("state", "State", [("active", "active"), ("revoked", "revoked")], query),
        ConsoleParts.choice("risk", "Risk metric", Self.risks.map { ($0, $0) }, query),
        ConsoleParts.choice("unused", "Not used for", Self.days.map { ($0, "\($0) days") }, query),
      ], sort: sort)
    let pages = ConsoleParts.pages(
      "/keys", filters + [("sort", sort.choice)], after: after, next: answer.value.next)
    return ConsolePage(
      "Keys", command: command(gate, sort), head: form,
      content: "\(table.markup)\((answer.value.unreadable ?? []).map(Self.note))\(pages)",
      table: table,
      json: answer.json)
  }

  private func command(_ gate: ConsoleLink, _ sort: ConsoleSort) -> String {
    gate.line(
      ["keys", "list"] + ConsoleParts.option("--prefix", prefix)
        + ["platform", "app", "state"].flatMap { ConsoleParts.option("--\($0)", query[$0]) }
        + ConsoleParts.option("--sort", sort.choice) + ConsoleParts.option("--risk", risk)
        + ConsoleParts.option("--unused-since", unusedDays.map { "\($0)d" }))
  }

  private func row(_ key: KeyDescription) -> [ConsoleTable.Cell] {
    [
      Parts.key(key.key), .init(key.app), .init(key.platform), .init(key.environment), Self.state(key),
      .init(key.riskText),
      key.lastUsedAt.map { .init($0, Shown.time($0, at: now)) } ?? .init("never"),
      .init(key.registeredAt, Shown.time(key.registeredAt, at: now)),
    ]
  }

  private static func note(onUnreadable key: String) -> HTML {
    """
    <p class="quiet">Not shown, because its row cannot be read: <code>\(Shown.text(key))</code>. \
    <code>sallyport store check</code> tells why.</p>
    """
  }

  static func state(_ key: KeyDescription) -> ConsoleTable.Cell {
    .init(key.state, #"<span class="pill \#(key.state == "active" ? "good" : "bad")">\#(key.state)</span>"#)
  }
}
