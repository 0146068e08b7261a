internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// One key: its record, its sessions, its last decisions and its refusals at this gate.
struct KeyPage {
  let key: KeyName
  let now: Timestamp
  let viewer: ConsoleViewer

  func page(_ gate: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let answer = try await gate.get("/v1/keys/\(key.text)", KeyDescription.self)
    let record = answer.value
    let few = ConsoleForm.query([("key", record.key), ("limit", "\(ConsoleParts.rows)")])
    let sessions = try await gate.get("/v1/sessions" + few, SessionListing.self).value
    let refusals = try await gate.get("/v1/refusals" + few, RefusalListing.self).value
    let decisions = try await DecisionsPage.listing(of: record.key, gate).value
    let page = SessionsPage(query: ConsoleForm(), now: now, viewer: viewer)
    return ConsolePage(
      "Key \(record.key.prefix(12))", command: gate.line(["keys", "show"], operand: record.key),
      head: #"<div class="acts">\#(acts(record, sessions, gate))</div>"#,
      content: """
        <section class="card">\(details(record))</section>
        <h2>Sessions</h2>
        \(page.table(sessions.sessions, gate, back: path(record)).markup)
        <h2>Decisions</h2>
        \(DecisionsPage.table(decisions.decisions, at: now).markup)
        <p class="command"><a href="\(DecisionsPage.path(of: record.key))">All decisions, with CSV and JSON</a> \
        <code>\(Shown.text(DecisionsPage.command(for: record.key, gate)))</code></p>
        <h2>Refusals at this gate since its start</h2>
        \(RefusalsPage.table(refusals.refusals, at: now).markup)
        """,
      isLive: true, acts: [GateActs.revoke, GateActs.restore, GateActs.closeSession, GateActs.closeSessions],
      json: answer.json)
  }

  private func path(_ record: KeyDescription) -> String { "/keys/\(record.key)" }

  private func acts(_ record: KeyDescription, _ sessions: SessionListing, _ gate: ConsoleLink) -> [HTML] {
    let values = [(name: "key", value: record.key)]
    let change =
      record.state == "active"
      ? viewer.form(
        GateActs.revoke, "Revoke key", values: values, back: path(record),
        question: "The gate refuses this key from now on, and closes its sessions with 3003. The device is not banned: "
          + "it can attest a new key. The same: \(gate.line(["keys", "revoke"], operand: record.key))",
        isDangerous: true)
      : viewer.form(
        GateActs.restore, "Restore key", values: values, back: path(record),
        question: "The gate admits this key again. The same: "
          + gate.line(["keys", "restore"], operand: record.key))
    guard !sessions.sessions.isEmpty else { return [change] }
    let count = max(record.sessions ?? 0, sessions.sessions.count)
    let named = count == 1 ? "1 session" : "\(count) sessions"
    return [
      change,
      viewer.form(
        GateActs.closeSessions, "Close its \(named)", values: values, back: path(record),
        question: "Closes \(named) with 1001. The device can connect again at once."),
    ]
  }

  private func details(_ record: KeyDescription) -> HTML {
    func text(_ text: String?) -> HTML? { text.map { "\(Shown.text($0))" } }
    func code(_ text: String?) -> HTML? { text.map { "<code>\($0)</code>" } }
    func time(_ text: String?) -> HTML? { text.map { Shown.time($0, at: now) } }
    return ConsoleParts.list([
      ("key", code(record.key)), ("key id", code(record.keyID)), ("state", KeysPage.state(record).markup),
      ("app", text(record.app)), ("platform", text(record.platform)), ("environment", text(record.environment)),
      ("registered", time(record.registeredAt)), ("last used", time(record.lastUsedAt) ?? "never"),
      ("revoked", time(record.revokedAt)), ("counter", record.platform == "ios" ? "\(record.counter)" : nil),
      ("category", text(record.category)), ("security level", text(record.securityLevel)),
      ("boot state", text(record.bootState)), ("patch level", text(record.patchLevel)),
      ("provisioning", text(record.provisioning)), ("bundle version", text(record.bundleVersion)),
      ("risk metric", risk(record)), ("public key", code(record.publicKey)),
      ("open sessions", record.sessions.map { "\($0)" }),
    ])
  }

  /// The metric, and when it was reported or rose last.
  private func risk(_ record: KeyDescription) -> HTML? {
    guard let risk = record.risk, let at = record.riskAt else { return nil }
    return "\(risk), \(Shown.time(at, at: now))\(record.isRiskOutdated == true ? ", outdated" : "")"
  }
}
