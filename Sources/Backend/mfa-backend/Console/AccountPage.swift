internal import ByteCoding
internal import ConsoleServing
internal import MFADomain
internal import MFAService

/// One account: what belongs to it, and its history.
struct AccountPage {
  let id: AccountID
  let now: Timestamp
  let viewer: ConsoleViewer

  /// The number of entries of the history that the page has.
  private static let entries = 25
  /// The kinds of events for which the page has a link, and their names.
  private static let kinds = [
    ("device", "devices"), ("session", "sessions"), ("code", "codes"), ("user", "locks and rights"),
    ("recovery", "recoveries"),
  ]

  var path: String { "/accounts/\(id.text)" }

  func page(_ backend: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let answer = try await backend.get("/v1/account" + ConsoleForm.query([("id", id.text)]), AccountDescription.self)
    let (description, username) = (answer.value, answer.value.account.username)
    let history = try await entries(nil, backend)
    let messages = try await entries("code", backend)
    let tables = AccountTables(description: description, page: self, backend: backend)
    // The page reads the id; the name is for its form, where it fits.
    let name = username.utf8.count <= AccountFilter.mostBytes ? username : nil
    func link(_ event: String?, _ label: String) -> HTML {
      let query = ConsoleForm.query([("account", name), ("id", id.text), ("event", event)])
      return #"<a class="nowrap" href="/history\#(query)">\#(label)</a> "#
    }
    let kinds = Self.kinds.map { event, label in link(event, label) }
    return ConsolePage(
      "Account \(Shown.text(username))", command: backend.line(["admin", "show"], account: id.text, named: username),
      head: #"<div class="acts">\#(AccountForms(description: description, page: self, backend: backend).all)</div>"#,
      content: """
        <section class="card">\(details(description))</section>
        \(tables.all)
        <h2>Messages and codes</h2>
        \(HistoryPage.table("Messages and codes, the newest first", messages, at: now).markup)
        <p class="quiet">After <code>code.sent</code> the queue of the provider has the message. What could not be \
        delivered is under <a href="/queues">Queues</a>.</p>
        <h2>Timeline</h2>
        \(HistoryPage.table("The history of the account, the newest first", history, at: now).markup)
        \(HistoryPage.noteOnRefusals)
        <p>\(link(nil, "The whole history of the account")) Only: \(kinds)</p>
        """,
      isLive: true, acts: BackendActs.all, json: answer.json)
  }

  /// By the id of the account, because the rule of today may refuse the name of an old account.
  private func entries(
    _ event: String?, _ backend: ConsoleLink
  ) async throws(ConsoleFault) -> [HistoryListing.Entry] {
    let query = ConsoleForm.query([("id", id.text), ("event", event), ("limit", "\(Self.entries)")])
    return try await backend.get("/v1/history" + query, HistoryListing.self).value.entries
  }

  private func details(_ description: AccountDescription) -> HTML {
    let account = description.account
    func time(_ text: String?) -> HTML? { text.map { Shown.time($0, at: now) } }
    let providers = description.identities.map { identity -> HTML in
      "<span>\(Shown.text(identity.issuer)), \(Shown.time(identity.connectedAt, at: now))</span> "
    }
    return ConsoleParts.list([
      ("name", "\(Shown.text(account.username))"), ("id", "<code>\(account.id)</code>"),
      ("state", AccountsPage.state(account).markup), ("locked by an operator", time(account.lockedAt)),
      ("created", time(account.createdAt)), ("second factor since", time(account.secondFactorSince) ?? "none"),
      ("authenticator app since", time(description.authenticatorSince)),
      ("e-mail for codes", description.hasEmail ? "confirmed" : "none"),
      ("backup codes left", "\(account.backupCodes)"), ("identity providers", providers.isEmpty ? nil : "\(providers)"),
      ("recovery", recovery(description.recovery)),
    ])
  }

  private func recovery(_ recovery: RecoveryListing.Entry?) -> HTML? {
    guard let recovery else { return nil }
    return """
      <span class="pill warn">\(recovery.state)</span> begun \(Shown.time(recovery.startedAt, at: now)) from \
      \(Shown.text(recovery.address)), ready \(Shown.time(recovery.readyAt, at: now)), ends \
      \(Shown.time(recovery.expiresAt, at: now))
      """
  }
}

/// The forms of an account.
private struct AccountForms {
  let description: AccountDescription
  let page: AccountPage
  let backend: ConsoleLink

  private var username: String { description.account.username }

  var all: [HTML] {
    let account = description.account
    let lock =
      account.lockedAt == nil
      ? form(
        BackendActs.lock, "Lock", ["admin", "lock"],
        "Ends the sessions of the account and refuses all its operations until it is unlocked.", isDangerous: true)
      : .nothing
    let hasFailures = !description.lockouts.isEmpty
    let unlock =
      account.lockedAt == nil && !hasFailures
      ? .nothing
      : form(
        BackendActs.unlock, "Unlock", ["admin", "unlock"],
        "Lifts the operator's lock, and forgets the failed attempts of all factors.",
        values: [("seen", account.lockedAt ?? "none")])
    let sessions = description.sessions.count
    let end =
      sessions == 0
      ? .nothing
      : form(
        BackendActs.endSessions, "End \(sessions == 1 ? "its session" : "its \(sessions) sessions")",
        ["admin", "end-sessions"], "The devices of the account must sign in again.")
    return [unlock, lock, end, recovery, right, help]
  }

  private var recovery: HTML {
    guard description.recovery != nil else { return .nothing }
    return form(
      BackendActs.cancelRecovery, "Stop the recovery", ["admin", "cancel-recovery"],
      "The open recovery ends. The user can begin another one with another backup code.")
  }

  private var right: HTML {
    description.account.isAdmin
      ? form(
        BackendActs.revoke, "Remove the admin right", ["admin", "revoke"],
        "The account may no longer administer other accounts.")
      : form(
        BackendActs.grant, "Make it an admin", ["admin", "grant"],
        "The sessions of the account may administer other accounts, with a recent second factor.", isDangerous: true)
  }

  /// What no page does, because its result is a secret.
  private var help: HTML {
    """
    <details class="act"><summary class="button plain">Lost every device…</summary><div class="question"><p>A code for a \
    new device is a secret, so that no page has one. After you have checked who asks, run this on the machine of the \
    backend, and read the code to the user:</p><p><code>\(Shown.text(line(["admin", "reset"])))\
    </code></p></div></details>
    """
  }

  private func line(_ words: [String]) -> String { backend.line(words, account: page.id.text, named: username) }

  private func form(
    _ act: ConsoleAct, _ label: String, _ words: [String], _ text: String,
    values: [(name: String, value: String)] = [], isDangerous: Bool = false
  ) -> HTML {
    page.form(
      act, label, values, "\(text) The same: \(line(words))", isDangerous: isDangerous)
  }
}

extension AccountPage {
  /// Returns a form that does an act at the account and leads back to its page.
  func form(
    _ act: ConsoleAct, _ label: String, _ values: [(name: String, value: String)], _ question: String,
    isDangerous: Bool = false
  ) -> HTML {
    viewer.form(
      act, label, values: [("account", id.text)] + values, back: path, question: Shown.text(question),
      isDangerous: isDangerous)
  }
}

extension ConsoleLink {
  /// Returns the command for an account: by its name, or by its id if today's rule refuses the name.
  func line(_ words: [String], account id: String, named name: String) -> String {
    (try? Username(name)) == nil ? line(words + ["--id", id]) : line(words, operand: name)
  }
}
