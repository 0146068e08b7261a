internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import GateRuntime
internal import Glibc
internal import ProcessSignals
internal import SQLiteStore
internal import Settings

struct StoreRestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Puts a backup into the place of all that is stored.",
    discussion: """
      Refused while anybody works on the store: stop the gates first. Either all of the backup is there afterwards or \
      nothing has changed. The keys of nonces are new, and every nonce that was issued before is refused.

      What a backup does not know: keys that were registered since are gone, and revocations made since have to be made \
      again.

      Example:

        sallyport store restore /var/backups/sallyport-monday.db -c /etc/sallyport/sallyport.yaml
      """)

  @Argument(help: "A file that `sallyport store backup` made.")
  var file: String

  @OptionGroup var target: StoreTarget

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    do throws(SallyportError) {
      let places = try target.resolve()
      try refuseItself(places.store)
      let store = try places.store.makeWhole()
      let (backup, kept) = try BackupCall.run(file, store.place) {
        let backup = try BackupFile(path: file)
        return (backup, try store.replace(with: ArchiveHeader(at: .now())) { try backup.read($0) })
      }
      tell(backup, of: store.place, kept: kept)
      if let keys = places.challengeKeysFile {
        Console.error(
          "hint: nonces are made with \(keys): replace the keys in it too (NUMBER SECRET, openssl rand -hex 32)")
      }
    } catch {
      throw error.told()
    }
  }

  /// A backup that is restored onto itself would be one no more, and what was put aside for it would be lost.
  private func refuseItself(_ store: GateSettings.Store) throws(SallyportError) {
    guard case .sqlite(let path) = store else { return }
    var (one, other) = (stat(), stat())
    guard stat(path, &one) == 0, stat(file, &other) == 0, one.st_dev == other.st_dev, one.st_ino == other.st_ino else {
      return
    }
    throw SallyportError(
      .usage, error: "\(file): it is the store itself, and no backup of it",
      hint: "name a file that `sallyport store backup` made; nothing was changed")
  }

  private func tell(_ backup: BackupFile, of place: String, kept: String?) {
    let lines = [
      "\(place): \(backup.count) keys, as they were in \(backup.place) at \(backup.madeAt)",
      "the keys of nonces are new: every nonce that was issued before is refused",
    ]
    var object: [String: JSONValue] = [
      "store": .text(place), "file": .text(file), "keys": .number(Int(backup.count)),
      "made_at": .text(backup.madeAt.description), "from": .text(backup.place),
    ]
    object["replaced"] = kept.map(JSONValue.text)
    target.say((lines + (kept.map { ["what was there before: \($0)"] } ?? [])).joined(separator: "\n"), object)
  }
}
