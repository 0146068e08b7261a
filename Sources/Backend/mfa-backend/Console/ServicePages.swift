internal import ByteCoding
internal import ConsoleServing
internal import MFAService

/// The state of the backend.
enum OverviewPage {
  static func page(_ backend: ConsoleLink, _ now: Timestamp) async throws(ConsoleFault) -> ConsolePage {
    let answer = try await backend.get("/v1/status", BackendStatus.self)
    let status = answer.value
    let checks = ConsoleTable(
      "What the backend needs", ["check", "state", "detail"],
      status.checks.map { check in
        let state = check.ready ? ("good", "ready") : ("bad", "not ready")
        return [
          .init(check.name), .init(state.1, #"<span><span class="pill \#(state.0)">\#(state.1)</span></span>"#),
          .init(check.detail),
        ]
      }, whenEmpty: "No checks.")
    let tone = status.ready ? "good" : "bad"
    return ConsolePage(
      "Overview", command: backend.line(["status"]),
      // Most questions begin with an account.
      head: ConsoleParts.filters(
        "/accounts", [ConsoleParts.field("search", "Account: name, or a part of it", ConsoleForm(), isSearch: true)]),
      content: """
        <p><span class="pill \(tone)">\(status.ready ? "ready" : "not ready")</span> \(Shown.text(status.version)) · up \
        \(BackendStatus.span(status.uptimeSeconds)) · listening on \(Shown.text(status.address))</p>
        \(faults(status))
        <div class="figures">\(figures(status))</div>
        <h2>Health</h2>
        \(checks.markup)
        <section class="card">\(ConsoleParts.list([
          ("database", "\(Shown.text(status.store))"),
          ("configuration", "\(status.configuration.file.map(Shown.text) ?? "flags and variables")"),
          ("loaded", Shown.time(status.configuration.loadedAt, at: now)),
        ]))</section>
        """,
      isLive: true)
  }

  private static func faults(_ status: BackendStatus) -> HTML {
    guard let fault = status.configuration.fault else { return .nothing }
    return """
      <div class="notice warn"><strong>The configuration was not reloaded</strong><p>\(Shown.text(fault))</p></div>
      """
  }

  private static func figures(_ status: BackendStatus) -> [HTML] {
    let waiting = status.delivery.map { $0.queued + $0.retrying }.reduce(0, +)
    let failed = status.delivery.map(\.failed).reduce(0, &+)
    return [
      (status.sockets, "open sockets"), (waiting, "messages waiting"), (Int(clamping: failed), "not delivered"),
    ].map { #"<section class="card"><strong>\#($0.0)</strong><span class="quiet">\#($0.1)</span></section>"# }
  }
}

/// The messages that wait, and those that were not delivered.
enum QueuesPage {
  static func page(_ backend: ConsoleLink, _ now: Timestamp) async throws(ConsoleFault) -> ConsolePage {
    let delivery = try await backend.get("/v1/status", BackendStatus.self).value.delivery
    let table = ConsoleTable(
      "Queues of messages since the start of the backend",
      ["queue", "provider", "state", "waiting", "to be tried again", "sent", "not delivered", "last failure"],
      delivery.map { row($0, at: now) }, whenEmpty: "No queues.")
    return ConsolePage(
      "Queues", command: backend.line(["status"]), content: table.markup, isLive: true, table: table,
      json: JSONText.encoding(delivery))
  }

  private static func row(_ queue: BackendStatus.Delivery, at now: Timestamp) -> [ConsoleTable.Cell] {
    let state =
      queue.fault.map { ("bad", "stopped: \($0)") } ?? (queue.provider == "off" ? ("warn", "off") : ("good", "on"))
    return [
      .init(BackendStatus.name(ofKind: queue.kind)), .init(queue.provider),
      .init(state.1, #"<span><span class="pill \#(state.0)">\#(Shown.text(state.1))</span></span>"#),
      .init(queue.queued),
      .init(queue.retrying), .init(queue.sent), .init(queue.failed), failure(queue, at: now),
    ]
  }

  private static func failure(_ queue: BackendStatus.Delivery, at now: Timestamp) -> ConsoleTable.Cell {
    guard let reason = queue.lastFailure, let at = queue.lastFailureAt else { return .init(nil as String?) }
    return .init("\(at) \(reason)", "<span>\(Shown.time(at, at: now))<small>\(Shown.text(reason))</small></span>")
  }
}

/// The open recoveries.
struct RecoveriesPage {
  let query: ConsoleForm
  let now: Timestamp
  let viewer: ConsoleViewer

  func page(_ backend: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = query["after"]
    let answer = try await backend.get(
      "/v1/recoveries" + ConsoleForm.query([("limit", "\(ConsoleParts.rows)"), ("after", after)]),
      RecoveryListing.self)
    let stops = viewer.role >= BackendActs.cancelRecovery.role
    let table = ConsoleTable(
      "Open recoveries by name of the account",
      ["account", "state", "begun", "from", "can be completed", "ends"] + (stops ? [""] : []),
      answer.value.recoveries.map { recovery in
        row(recovery) + (stops ? [.init("", act(recovery, backend))] : [])
      }, whenEmpty: "No open recoveries.")
    return ConsolePage(
      "Recoveries", command: backend.line(["admin", "recoveries"]),
      content: "\(table.markup)\(ConsoleParts.pages("/recoveries", [], after: after, next: answer.value.next))",
      isLive: true, acts: [BackendActs.cancelRecovery], table: table, json: answer.json)
  }

  private func row(_ recovery: RecoveryListing.Entry) -> [ConsoleTable.Cell] {
    [
      BackendParts.account(recovery.account, recovery.username),
      .init(recovery.state, #"<span><span class="pill warn">\#(recovery.state)</span></span>"#),
      BackendParts.time(recovery.startedAt, at: now), .init(recovery.address),
      BackendParts.time(recovery.readyAt, at: now), BackendParts.time(recovery.expiresAt, at: now),
    ]
  }

  private func act(_ recovery: RecoveryListing.Entry, _ backend: ConsoleLink) -> HTML {
    let line = backend.line(
      ["admin", "cancel-recovery"], account: recovery.account, named: recovery.username)
    return viewer.form(
      BackendActs.cancelRecovery, "Stop", values: [("account", recovery.account)], back: "/recoveries",
      question: Shown.text("The recovery of \(recovery.username) ends. The same: \(line)"))
  }
}
