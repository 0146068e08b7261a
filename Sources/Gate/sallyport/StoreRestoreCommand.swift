internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import Glibc
internal import ProcessSignals
internal import SQLiteStore
internal import Settings

struct StoreRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Replaces everything in the store with a backup.",
    discussion: """
      Refused while a gate or another command uses the store: stop the gates first. The restore is atomic: on failure \
      nothing changes. It creates new challenge keys, so nonces that were issued earlier are refused.

      Changes since the backup are lost: keys that were registered later are gone, and later revocations must be \
      repeated.

      Example:

        sallyport store restore /var/backups/sallyport-monday.db
      """)

  @Argument(help: "A file that `sallyport store backup` wrote.")
  var file: String

  @OptionGroup var target: StoreTarget

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    let places = try target.resolve()
    try refuseItself(places.store)
    let store = try places.store.makeWhole()
    let (backup, kept) = try BackupCall.run(file, store.place) {
      let backup = try BackupFile(path: file)
      return (backup, try store.replace(with: ArchiveHeader(at: .now())) { try backup.read($0) })
    }
    tell(backup, of: store.place, kept: kept)
    if let keys = places.challengeKeysFile {
      Console.tell(
        .hint("the gate's challenge keys are in \(keys): replace them too (NUMBER SECRET, openssl rand -hex 32)"))
    }
  }

  /// Refuses to restore a SQLite store from itself: the restore would overwrite its own source.
  private func refuseItself(_ store: GateSettings.Store) throws(Failure) {
    guard case .sqlite(let path) = store else { return }
    var (one, other) = (stat(), stat())
    guard stat(path, &one) == 0, stat(file, &other) == 0, one.st_dev == other.st_dev, one.st_ino == other.st_ino else {
      return
    }
    throw Failure(
      .usage, "\(file): this is the store itself, not a backup",
      hint: "name a file that `sallyport store backup` wrote; nothing was changed")
  }

  private func tell(_ backup: BackupFile, of place: String, kept: String?) {
    let lines = [
      "\(place): \(backup.count) keys restored, from \(backup.place) at \(backup.madeAt)",
      "challenge keys replaced: nonces issued before the restore are refused",
    ]
    var object: [String: JSONValue] = [
      "store": .text(place), "file": .text(file), "keys": .number(Int(backup.count)),
      "made_at": .text(backup.madeAt.description), "from": .text(backup.place),
    ]
    object["replaced"] = kept.map(JSONValue.text)
    target.say((lines + (kept.map { ["previous store kept as: \($0)"] } ?? [])).joined(separator: "\n"), object)
  }
}
