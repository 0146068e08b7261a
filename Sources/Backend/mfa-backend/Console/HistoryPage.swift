internal import ByteCoding
internal import ConsoleServing
internal import MFADomain
internal import MFAService

/// The audit history.
struct HistoryPage {
  let query: ConsoleForm
  let now: Timestamp

  private static let days: [Int64] = [1, 7, 30, 90, 365]
  private var days: Int64? { query["days"].flatMap { Int64($0) }.flatMap { Self.days.contains($0) ? $0 : nil } }

  private static let fields = [
    ("search", "Search"), ("account", "Account"), ("event", "Event, or its beginning"), ("actor", "By"),
    ("request", "Request id"),
  ]

  private var conditions: [(name: String, value: String?)] { Self.fields.map { name, _ in (name, query[name]) } }

  /// The account of which a page has led here, in place of the name: the rule of today may refuse the name of an old
  /// account. The form drops it, because its field for the name must count.
  private var id: String? { query["id"].flatMap { AccountID($0) }?.text }

  func page(_ backend: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let before = query["after"]
    let since = days.map { now.advanced(by: .seconds(-86_400 * $0)).wholeSecond.description }
    let target =
      "/v1/history"
      + ConsoleForm.query(
        conditions + [("id", id), ("since", since), ("limit", "\(ConsoleParts.rows)"), ("before", before)])
    let answer = try await backend.get(target, HistoryListing.self)
    let listing = answer.value
    let table = Self.table("The history, the newest first", listing.entries, at: now, hasAccounts: true)
    let filters = conditions + [("id", id), ("days", days.map(String.init))]
    let form = ConsoleParts.filters(
      "/history",
      Self.fields.map { ConsoleParts.field($0.0, $0.1, query, isSearch: $0.0 == "search") } + [
        ConsoleParts.choice("days", "Within", Self.days.map { ("\($0)", "\($0) d") }, query)
      ])
    return ConsolePage(
      "History", command: command(backend),
      head: """
        \(form)<p class="acts"><a class="button" href="/history/check">Check the chain</a></p>
        """,
      content: """
        \(table.markup)\(Self.noteOnRefusals)
        \(BackendParts.examined(listing.examined, listing.next != nil, found: listing.entries.count))
        \(ConsoleParts.pages("/history", filters, after: before, next: listing.next.map(String.init)))
        """,
      isLive: before == nil, table: table, json: answer.json)
  }

  private func command(_ backend: ConsoleLink) -> String {
    let options = conditions.flatMap { ConsoleParts.option("--\($0.name)", $0.value) }
    return backend.line(["audit", "search"] + options + ConsoleParts.option("--days", days.map(String.init)))
  }

  static func table(
    _ caption: String, _ entries: [HistoryListing.Entry], at now: Timestamp, hasAccounts: Bool = false
  ) -> ConsoleTable {
    ConsoleTable(
      caption, ["time", "event"] + (hasAccounts ? ["account"] : []) + ["detail", "by", "request", "entry"],
      entries.map { entry in
        let tone: HTML = entry.isWarning ? #" class="nowrap warn""# : #" class="nowrap""#
        let event =
          #"<a href="/history?event=\#(ConsoleForm.encoded(entry.event))"><code\#(tone)>\#(entry.event)</code></a>"#
          as HTML
        return [.init(entry.at, Shown.time(entry.at, at: now)), .init(entry.event, event)]
          + (hasAccounts ? [account(entry.account)] : []) + [
            .init(entry.detail), initiator(entry.actor),
            ConsoleParts.code(entry.requestId, length: 8), .init(entry.sequence),
          ]
      },
      whenEmpty: "No entries that match.")
  }

  /// An operator in full, and the beginning of an app instance's key.
  private static func initiator(_ actor: String) -> ConsoleTable.Cell {
    actor.hasPrefix("operator:") ? .init(actor) : ConsoleParts.code(actor, length: 16)
  }

  private static func account(_ key: String?) -> ConsoleTable.Cell {
    guard let key else { return .init(nil as String?) }
    return .init(key, #"<a class="name" href="/accounts?search=\#(ConsoleForm.encoded(key))">\#(Shown.text(key))</a>"#)
  }
}

extension HistoryPage {
  /// Says which refusals have no entry of their own.
  static let noteOnRefusals: HTML = """
    <p class="quiet">Of refusals of one kind, the first \(RefusalTally.mostInFull) within \
    \(RefusalTally.window.components.seconds / 60) minutes have an entry each. The others follow after this time as one \
    entry <code>refusals.repeated</code>, with their number and the request id of the last one.</p>
    """
}

/// The check of the history. It reads all entries, so that it is a page of its own.
enum HistoryCheckPage {
  static func page(_ backend: ConsoleLink) async throws(ConsoleFault) -> ConsolePage {
    let answer: ConsoleLink.Answer<HistoryVerdict>
    do throws(ConsoleFault) {
      answer = try await backend.get("/v1/history/check", HistoryVerdict.self)
    } catch {
      // A check that was too long would begin again at once.
      throw ConsoleFault(error.status, error.text, hint: error.hint, isPassing: false)
    }
    let verdict = answer.value
    let notice: HTML =
      if let fault = verdict.fault {
        """
        <div class="notice bad" role="alert"><strong>The history is broken: \(Shown.text(fault))</strong>\
        <p>Entries were changed, removed or moved. Compare with a copy elsewhere.</p></div>
        """
      } else {
        #"<p class="notice good" role="status">Every entry has its hash and follows the one before it.</p>"#
      }
    return ConsolePage(
      "Check of the history", command: backend.line(["audit", "verify"]),
      content: """
        \(notice)
        <section class="card">\(ConsoleParts.list([
          ("entries", "\(verdict.entries)"), ("hash of the last one", "<code>\(verdict.hash)</code>"),
          ("without a key, by an older version", verdict.unkeyed == 0 ? nil : "\(verdict.unkeyed)"),
        ]))</section>
        \(verdict.isIntact ? later(verdict, backend) : .nothing)
        <p><a href="/history">Back to the history</a></p>
        """,
      json: answer.json)
  }

  /// How a later check finds that entries were removed from the end.
  private static func later(_ verdict: HistoryVerdict, _ backend: ConsoleLink) -> HTML {
    let line = backend.line(["audit", "verify", "--known", "\(verdict.entries):\(verdict.hash)"])
    return """
      <p class="quiet">Entries that were removed from the end show only with an earlier state. Keep this line on another \
      machine, and run it later: <code>\(Shown.text(line))</code></p>
      """
  }
}
