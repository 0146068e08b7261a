internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain
internal import MFAStore

struct StoreRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Replaces everything in the database with a backup.",
    discussion: """
      Refused while a backend or another command uses the database: stop the backends first. The restore is atomic: on \
      failure nothing changes. The tables must exist: mfa-backend store migrate creates them. The keys file must open \
      the data keys of the backup. All sessions end, open challenges and codes are void, and open account recoveries \
      are cancelled.

      Changes since the backup are lost: accounts and devices that were added later are gone, devices and trust that \
      were removed later are valid again, and so are backup codes that were used later. Account locks and admin roles \
      are those of the backup: lock again with mfa-backend admin lock what was locked since.

      Example:

        mfa-backend store restore /var/backups/mfa-monday.db -c /etc/mfa/mfa.yaml
      """)

  @Argument(help: "A file that mfa-backend store backup wrote.")
  var file: String

  @OptionGroup var target: StoreTarget

  private struct Summary: Encodable {
    let store: String
    let file: String
    let accounts: Int64
    let rows: Int64
    let madeAt: String
    let from: String
  }

  func run() async throws {
    let (place, archive) = try target.resolveCurrent()
    try refuseItself(place)
    let keys = try target.database.reader().readDatabase().keys()
    let backup = try StoreCall.on(place, file: file) {
      let backup = try StoreBackup(path: file)
      try backup.restore(into: archive, with: keys, at: WallClock.system.now())
      return backup
    }
    let date = "\(backup.madeAt.wholeSecond)"
    target.format.print(
      "\(place.place): \(backup.accounts) accounts restored, from \(backup.origin) at \(date)\nall sessions have ended",
      Summary(
        store: place.place, file: file, accounts: backup.accounts, rows: backup.rows, madeAt: date,
        from: backup.origin))
  }

  /// Refuses to restore a SQLite database from itself.
  private func refuseItself(_ place: BackendSettings.Database) throws(Failure) {
    guard let path = place.sqlitePath, InputFile.areSame(path, file) else { return }
    throw Failure(
      .usage, "\(file): this is the database itself, not a backup",
      hint: "name a file that mfa-backend store backup wrote; nothing was changed")
  }
}
