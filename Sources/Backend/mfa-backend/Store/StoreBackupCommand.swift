internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain
internal import MFAStore
internal import ProcessSignals

struct StoreBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Writes a consistent snapshot of the database to a file, while backends keep running.",
    discussion: """
      The file contains accounts, factors, trust and the history. Its format does not depend on the database, so it can \
      be restored into SQLite or PostgreSQL. It contains no sessions, challenges and codes. Secrets in it stay sealed: \
      keep the keys file as well, in another place. The file has mode 0600 and appears only when it is complete.

      Example:

        mfa-backend store backup /var/backups/mfa-monday.db -c /etc/mfa/mfa.yaml
      """)

  @Argument(help: "The file to create. It must not exist.")
  var file: String

  @OptionGroup var target: StoreTarget

  private struct Summary: Encodable {
    let file: String
    let store: String
    let accounts: Int64
    let rows: Int64
  }

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    let (place, archive) = try target.resolveCurrent()
    let backup = try StoreCall.on(place, file: file) {
      try StoreBackup.write(archive, named: place.place, to: file, at: WallClock.system.now())
    }
    target.format.print(
      "\(file): \(backup.accounts) accounts, \(backup.rows) rows of \(place.place)",
      Summary(file: file, store: place.place, accounts: backup.accounts, rows: backup.rows))
  }
}
