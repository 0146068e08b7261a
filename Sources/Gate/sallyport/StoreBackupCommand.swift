internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import GateRuntime
internal import ProcessSignals
internal import SQLiteStore
internal import Settings

struct StoreBackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copies the keys to a file, as they are at one instant, while gates work.",
    discussion: """
      The file holds keys, counters, revocations and receipts; it is the same whatever the store is, and restores into \
      either. It holds neither keys of nonces nor spent nonces. It has mode 0600 and appears when it is complete.

      Example:

        sallyport store backup /var/backups/sallyport-monday.db -c /etc/sallyport/sallyport.yaml
      """)

  @Argument(help: "The file to make. It must not be there.")
  var file: String

  @OptionGroup var target: StoreTarget

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    do throws(SallyportError) {
      let store = try target.resolve().store.makeWhole()
      let schema = try StoreCall.on(store) { () throws(StoreError) in try store.schema() }
      guard schema.isCurrent else {
        throw SallyportError(
          .noInput,
          error: "\(store.place): \(schema.version == 0 ? "there is no store" : "its tables are of an older version")",
          hint: "back it up with the sallyport that runs on it, or migrate it first: sallyport store migrate")
      }
      let backup = try BackupCall.run(file, store.place) { try BackupFile.write(store, to: file, at: .now()) }
      target.say(
        "\(file): \(backup.count) keys of \(store.place)",
        ["file": .text(file), "store": .text(store.place), "keys": .number(Int(backup.count))])
    } catch {
      throw error.told()
    }
  }
}

/// Work on a backup and a store, whose faults a command tells.
enum BackupCall {
  static func run<Value>(_ file: String, _ place: String, _ body: () throws -> Value) throws(SallyportError) -> Value {
    do {
      return try body()
    } catch let fault as BackupFile.Fault {
      throw SallyportError(fault, of: file)
    } catch let error as StoreError {
      throw SallyportError(error, of: place)
    } catch is StoreInUse {
      throw SallyportError(
        .unavailable, error: "\(place): another process uses it, a gate or a command",
        hint: "stop every gate on this store, then try again; nothing was changed")
    } catch {
      throw SallyportError(.software, error: "\(error)", hint: "please report this")
    }
  }
}

extension SallyportError {
  /// A fault of the backup at `file`.
  init(_ fault: BackupFile.Fault, of file: String) {
    switch fault {
    case .missing: self.init(.noInput, error: "\(file): there is no such file", hint: "name a backup")
    case .exists:
      self.init(.cannotCreate, error: "\(file): it is there already", hint: "name another file, or remove that one")
    case .foreign(let reason):
      self.init(
        .badData, error: "\(file): not a backup that this sallyport can read: \(reason)",
        hint: "name a file that `sallyport store backup` made, not with a newer version; nothing was changed")
    case .damaged(let reason):
      self.init(.badData, error: "\(file): damaged: \(reason)", hint: "take another backup; nothing was changed")
    case .unwritable(.full):
      self.init(.cannotCreate, error: "\(file): its disk is full", hint: "name a file that has room; none was made")
    case .unwritable(let error):
      let reason = if case .unreachable(let reason) = error { reason } else { "\(error)" }
      self.init(
        .cannotCreate, error: "\(file): it cannot be made: \(reason)",
        hint: "name a file in a folder that is there and that this user may write; none was made")
    case .store(let error):
      self.init(error, of: file)
    }
  }
}
