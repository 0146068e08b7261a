internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain
internal import MFAService

extension AuditCommand {
  struct Search: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "search",
      abstract: "Prints the entries of the history that match, one per line, newest first.",
      discussion: """
        All conditions must match. Each line begins with the number of the entry. A search reads at most \
        \(AuditTrail.mostExamined) entries; a note then says how to continue.

        Example:

          mfa-backend audit search --event user --days 7
        """)
    @Option(help: "The username of an account.") var account: String?
    @Option(help: "An event, such as user.locked, or the beginning of several, such as user.") var event: String?
    @Option(help: "A part of the initiator: an app instance, an admin or an operator.") var actor: String?
    @Option(help: "The beginning of a request id.") var request: String?
    @Option(help: "A text in any field.") var search: String?
    @Option(help: "Only entries of the last so many days, 1 to 3650.") var days: Int?
    @Option(help: "Only entries with a smaller number.") var before: Int64?
    @Option(help: "The number of entries, 1 to 1000.") var last = 100
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    func validate() throws {
      guard (1...1000).contains(last) else { throw ValidationError("--last \(last): must be from 1 to 1000") }
      guard (1...3650).contains(days ?? 1) else { throw ValidationError("--days \(days ?? 0): must be from 1 to 3650") }
    }

    func run() async throws {
      var filter = AuditFilter()
      filter.account = try account.map { try Username($0) }
      (filter.event, filter.actor, filter.requestID, filter.text) = (event, actor, request, search)
      filter.since = days.map { WallClock.system.now().advanced(by: .seconds(-86_400 * Int64($0))) }
      // The history is stored unencrypted, so that a search needs no keys.
      let store = try database.reader().readDatabase(needsKeys: false).openExisting()
      let found = try await AuditTrail(store, nil).search(filter, before: before, atMost: last)
      for entry in found.entries {
        let parts = [entry.account.map(PrintedName.quoting), entry.detail, entry.actor].compactMap(\.self)
        format.print(
          TerminalText.printable(
            (["\(entry.sequence) \(entry.at) \(entry.event)"] + parts.filter { !$0.isEmpty }).joined(separator: " ")),
          HistoryListing.Entry(entry))
      }
      if let next = found.next, found.entries.count < last {
        Console.note("note: \(found.examined) entries were read; continue with --before \(next)")
      }
    }
  }
}
