internal import ArgumentParser
internal import MFASettings
internal import MFAStore

extension AdminCommand {
  /// Confirms that the database is for development: without it nothing of it is shown.
  struct Development: ParsableArguments {
    @Flag(help: "Needed: this is for developing, and shows every account's names, addresses and devices.")
    var development = false

    func validate() throws {
      guard development else {
        throw ValidationError("this is for developing alone: give --development as well")
      }
    }
  }

  struct Tables: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Lists the database's tables with the numbers of their rows, one a line. For developing.")
    @OptionGroup var development: Development
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
      try await CommandFault.telling {
        let store = try database.reader().readDatabase(needsKeys: false).openExisting()
        for (name, rows) in try await DatabaseBrowser(store).tables() { try BackendConsole.print("\(name) \(rows)") }
      }
    }
  }

  struct Rows: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints rows of a table, one a line as JSON, without what is secret. For developing.",
      discussion: """
        Example:

          mfa-backend admin rows devices --development --database sqlite:///tmp/mfa.db
        """)
    @OptionGroup var development: Development
    @Argument(help: "The table's name, as mfa-backend admin tables prints it.") var table: String
    @Option(help: "How many rows to pass over.") var skip = 0
    @Option(help: "How many rows, from 1 to 1000.") var count = 100
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
      guard (1...1000).contains(count) else { throw ValidationError("--count \(count): from 1 to 1000") }
      guard skip >= 0 else { throw ValidationError("--skip \(skip): 0 or more") }
    }

    func run() async throws {
      try await CommandFault.telling {
        let store = try database.reader().readDatabase(needsKeys: false).openExisting()
        do {
          let rows = try await DatabaseBrowser(store).rows(of: table, skipping: skip, atMost: count)
          for row in rows { try BackendConsole.print(row) }
        } catch let unknown as DatabaseBrowser.UnknownTable {
          throw CommandFault(
            .failed, "there is no table \(unknown.name)", hint: "mfa-backend admin tables --development lists them")
        }
      }
    }
  }
}
