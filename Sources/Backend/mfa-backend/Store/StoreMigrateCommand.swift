internal import ArgumentParser
internal import Commands
internal import MFAStore

struct StoreMigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Creates the tables of the database, or migrates them to this version.",
    discussion: """
      A backend migrates its database at start. Use this command to migrate earlier, or with a database role that may \
      create tables when the backend's role may not. A database of a newer version is refused and stays unchanged.

      Example:

        mfa-backend store migrate --database postgres://owner@db1.example/mfa
      """)

  @OptionGroup var target: StoreTarget

  private struct Summary: Encodable {
    let store: String
    let from: Int
    let to: Int
  }

  func run() async throws {
    let (place, archive) = try target.resolve()
    let before = try StoreCall.on(place) { try archive.migrate() }
    target.format.print(
      before.isCurrent
        ? "\(place.place): up to date, version \(before.newest)"
        : "\(place.place): migrated from version \(before.version) to \(before.newest)",
      Summary(store: place.place, from: before.version, to: before.newest))
  }
}
