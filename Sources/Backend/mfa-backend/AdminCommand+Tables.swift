internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAStore

extension AdminCommand {
  /// The flag that confirms use for development. The commands print account data, so they refuse to run without it.
  struct Development: ParsableArguments {
    @Flag(help: "Required: for development only. The output contains names, addresses and devices of all accounts.")
    var development = false

    func validate() throws {
      guard development else {
        throw ValidationError("this command is for development only: add --development")
      }
    }
  }

  struct Tables: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "tables",
      abstract: "Lists the tables of the database with their row counts, one per line. For development.",
      discussion: """
        Example:

          mfa-backend admin tables --development
        """)
    @OptionGroup var development: Development
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var format: ResultFormat

    /// A table, for programs.
    private struct Line: Encodable {
      let name: String
      let rows: Int
    }

    func run() async throws {
      let store = try database.reader().readDatabase(needsKeys: false).openExisting()
      for (name, rows) in try await DatabaseBrowser(store).tables() {
        format.print("\(name) \(rows)", Line(name: name, rows: rows))
      }
    }
  }

  struct Rows: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rows",
      abstract: "Prints rows of a table as JSON, one per line, without secret columns. For development.",
      discussion: """
        Example:

          mfa-backend admin rows devices --development
        """)
    @OptionGroup var development: Development
    @Argument(help: "The name of the table, as printed by mfa-backend admin tables.") var table: String
    @Option(help: "The number of rows to skip.") var skip = 0
    @Option(help: "The number of rows, 1 to 1000.") var count = 100
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
      guard (1...1000).contains(count) else { throw ValidationError("--count \(count): must be from 1 to 1000") }
      guard skip >= 0 else { throw ValidationError("--skip \(skip): must be 0 or more") }
    }

    func run() async throws {
      let store = try database.reader().readDatabase(needsKeys: false).openExisting()
      do {
        let rows = try await DatabaseBrowser(store).rows(of: table, skipping: skip, atMost: count)
        for row in rows { Console.print(TerminalText.escaped(json: row)) }
      } catch let unknown as DatabaseBrowser.UnknownTable {
        throw Failure(
          .noInput, "no table named \(unknown.name)", hint: "mfa-backend admin tables --development lists them")
      }
    }
  }
}
