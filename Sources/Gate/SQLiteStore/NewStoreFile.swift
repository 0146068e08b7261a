internal import AttestGate
internal import GRDB
internal import ProcessSignals

/// A store file that is written under a temporary name, so that it appears complete or not at all.
///
/// Not thread-safe. Calls block.
final class NewStoreFile {
  private let draft: TemporaryFile
  private var queue: DatabaseQueue?

  /// Creates the temporary file with this version's tables and mode 0600.
  init(at path: String) throws {
    do throws(TemporaryFile.WriteError) {
      draft = try TemporaryFile(for: path)
    } catch {
      throw StoreError(systemError: error.number)
    }
    let queue = try DatabaseQueue(path: draft.path)
    // A temporary file need not survive a crash: it is flushed once, when it is complete.
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    }
    try SQLiteSchema.migrator.migrate(queue)
    self.queue = queue
  }

  func write(_ body: (Database) throws -> Void) throws {
    guard let queue else { throw StoreError.closed }
    do {
      try queue.write(body)
    } catch {
      throw StoreError(error)
    }
  }

  func append(_ entries: [KeyEntry]) throws { try write { _ = try CatalogStatements(db: $0).merge(entries) } }

  /// Flushes the temporary file and renames it into place. `prepare` runs just before the rename and `finish` just
  /// after it. Signals that would terminate the process are held back meanwhile.
  func place(preparing prepare: () throws -> Void = {}, finishing finish: () throws -> Void = {}) throws {
    // Merged revocations recorded changes, but no reader has a position in this file.
    try write { try $0.execute(sql: "DELETE FROM changes") }
    try queue?.close()
    queue = nil
    do {
      try draft.place(preparing: prepare, finishing: finish)
    } catch let fault as TemporaryFile.WriteError {
      throw StoreError(systemError: fault.number)
    }
  }

  /// Gives the file to the owner of the store at `path`, or of its folder, when the process runs as root.
  func takeOwner(of path: String) {
    guard let owner = StoreOwner(of: path) else { return }
    draft.withDescriptor { owner.take($0) }
  }
}
