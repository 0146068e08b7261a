internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import ProcessSignals
internal import SQLiteStore
internal import Settings

struct StoreBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Writes a consistent snapshot of the keys to a file, while gates keep running.",
    discussion: """
      The file contains keys, counters, revocations and receipts. Its format does not depend on the store, so it can \
      be restored into SQLite or PostgreSQL. It contains no challenge keys and no used nonces. It has mode 0600 and \
      appears only when it is complete.

      Example:

        sallyport store backup /var/backups/sallyport-monday.db
      """)

  @Argument(help: "The file to create. It must not exist.")
  var file: String

  @OptionGroup var target: StoreTarget

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    let store = try target.resolve().store.makeWhole()
    let schema = try StoreCall.on(store) { () throws(StoreError) in try store.schema() }
    guard schema.isCurrent else {
      throw Failure(
        .noInput,
        "\(store.place): \(schema.version == 0 ? "there is no store" : "its tables are of an older version")",
        hint: "use the sallyport version that runs on this store, or migrate it first: sallyport store migrate")
    }
    let backup = try BackupCall.run(file, store.place) { try BackupFile.write(store, to: file, at: .now()) }
    target.say(
      "\(file): \(backup.count) keys of \(store.place)",
      ["file": .text(file), "store": .text(store.place), "keys": .number(Int(backup.count))])
  }
}

/// Runs work on a backup and a store, and converts errors into command failures.
enum BackupCall {
  static func run<Value>(_ file: String, _ place: String, _ body: () throws -> Value) throws(Failure) -> Value {
    do {
      return try body()
    } catch let fault as BackupFile.BackupError {
      throw Failure(fault, of: file)
    } catch let error as StoreError {
      throw Failure(error, of: place)
    } catch is StoreInUse {
      throw Failure(
        .unavailable, "\(place): in use by a gate or another command",
        hint: "stop every gate that uses this store, then try again; nothing was changed")
    } catch {
      throw Failure(.internalError, "\(error)", hint: "report this as a bug")
    }
  }
}

extension Failure {
  /// Describes a failure of the backup file at `file`.
  init(_ fault: BackupFile.BackupError, of file: String) {
    switch fault {
    case .missing:
      self.init(.noInput, "\(file): no such file", hint: "name a file of `sallyport store backup`")
    case .unreadable(let reason):
      self.init(
        .noInput, "\(file): cannot be read: \(reason)",
        hint: "name a file that this user can read: a backup has mode 0600; nothing was changed")
    case .exists:
      self.init(.cannotCreate, "\(file): file exists", hint: "name another file, or remove this one")
    case .foreign(let reason):
      self.init(
        .badData, "\(file): not a backup that this sallyport can read: \(reason)",
        hint: "name a backup from this version or an older one; nothing was changed")
    case .damaged(let reason):
      self.init(.badData, "\(file): damaged: \(reason)", hint: "use another backup; nothing was changed")
    case .unwritable(.full):
      self.init(
        .cannotCreate, "\(file): disk full", hint: "name a disk with free space; no file was created")
    case .unwritable(let error):
      let reason = if case .unreachable(let reason) = error { reason } else { "\(error)" }
      self.init(
        .cannotCreate, "\(file): cannot be created: \(reason)",
        hint: "name a file in an existing folder that this user can write to; no file was created")
    case .store(let error):
      self.init(error, of: file)
    }
  }
}
