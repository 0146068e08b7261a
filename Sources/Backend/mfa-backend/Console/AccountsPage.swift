internal import ByteCoding
internal import ConsoleServing
internal import MFADomain
internal import MFAService

/// The accounts.
struct AccountsPage {
  let query: ConsoleForm
  let now: Timestamp

  private static let states = AccountFilter.State.allCases.map(\.rawValue)
  private var state: String? { query["state"].flatMap { Self.states.contains($0) ? $0 : nil } }
  private var filters: [(name: String, value: String?)] { [("search", query["search"]), ("state", state)] }

  func page(_ backend: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let after = query["after"]
    let target =
      "/v1/accounts" + ConsoleForm.query(filters + [("limit", "\(ConsoleParts.rows)"), ("after", after)])
    let answer = try await backend.get(target, AccountListing.self)
    let listing = answer.value
    let table = ConsoleTable(
      "Accounts by name",
      ["account", "state", "second factor", "devices", "security keys", "trusted", "backup codes", "created"],
      listing.accounts.map(row), whenEmpty: "No accounts that match.")
    let form = ConsoleParts.filters(
      "/accounts",
      [
        ConsoleParts.field("search", "Name, or a part of it", query, isSearch: true),
        ConsoleParts.choice("state", "State", [("locked", "locked"), ("admin", "admin")], query),
      ])
    let command = backend.line(
      ["admin", "users"] + ConsoleParts.option("--search", query["search"]) + ConsoleParts.option("--state", state))
    return ConsolePage(
      "Accounts", command: command, head: form,
      content: """
        \(table.markup)\(BackendParts.examined(listing.examined, listing.next != nil, found: listing.accounts.count))
        \(ConsoleParts.pages("/accounts", filters, after: after, next: listing.next))
        """,
      table: table, json: answer.json)
  }

  private func row(_ account: AccountListing.Entry) -> [ConsoleTable.Cell] {
    [
      BackendParts.account(account.id, account.username), Self.state(account),
      BackendParts.time(account.secondFactorSince, at: now, missing: "none"), .init(account.devices),
      .init(account.securityKeys), .init(account.trustedDevices), .init(account.backupCodes),
      BackendParts.time(account.createdAt, at: now),
    ]
  }

  static func state(_ account: AccountListing.Entry) -> ConsoleTable.Cell {
    let words = [account.lockedAt == nil ? nil : ("bad", "locked"), account.isAdmin ? ("warn", "admin") : nil]
      .compactMap(\.self)
    let shown = words.isEmpty ? [("good", "active")] : words
    return .init(
      shown.map { $0.1 }.joined(separator: " "),
      "<span>\(shown.map { #"<span class="pill \#($0.0)">\#($0.1)</span> "# as HTML })</span>")
  }
}

/// Parts of several pages.
enum BackendParts {
  /// Returns a link to the page of an account.
  static func account(_ id: String, _ username: String) -> ConsoleTable.Cell {
    .init(username, #"<a class="name" href="/accounts/\#(id)">\#(Shown.text(username))</a>"#)
  }

  /// Returns a cell with an instant.
  static func time(_ instant: String?, at now: Timestamp, missing: String? = nil) -> ConsoleTable.Cell {
    instant.map { .init($0, Shown.time($0, at: now)) } ?? .init(missing)
  }

  /// Says that a search has stopped before the end of its list; nothing for a page that is full.
  static func examined(_ count: Int, _ goesOn: Bool, found: Int) -> HTML {
    guard goesOn, found < ConsoleParts.rows else { return .nothing }
    return #"<p class="quiet">\#(count) were searched. The next page continues the search.</p>"#
  }
}
