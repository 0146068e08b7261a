internal import Databases
internal import GRDB
internal import Locking

/// Connections to a SQLite file for reads on the threads that ask. There are as many as threads that have read at the
/// same time.
///
/// They do less than those of a `DatabasePool`, which compiles the statements of each transaction, and looks each time
/// whether the tables have changed. The file must have its tables before the first read.
final class SQLiteReaders: Sendable {
  private let path: String
  /// The files that the writer uses.
  private let files: OpenFiles
  private let idle = LockedValue<[DatabaseQueue]>([])

  init(path: String, files: OpenFiles) {
    self.path = path
    self.files = files
  }

  /// Runs `body` in a transaction that only reads.
  func read<Value>(_ body: (SQLiteSession) throws -> Value) throws -> Value {
    let reader = try idle.withLock { $0.popLast() } ?? open()
    defer { idle.withLock { $0.append(reader) } }
    return try reader.unsafeRead { db in
      let session = SQLiteSession(db: db)
      _ = try session.run("BEGIN DEFERRED TRANSACTION", [])
      defer { end(session) }
      return try body(session)
    }
  }

  private func end(_ session: SQLiteSession) {
    do {
      _ = try session.run("COMMIT TRANSACTION", [])
    } catch {
      _ = try? session.run("ROLLBACK TRANSACTION", [])
    }
  }

  private func open() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    // A reader waits only while another process opens the file after a crash.
    configuration.busyMode = .timeout(0.1)
    configuration.label = "mfa.store.reader"
    let reader = try DatabaseQueue(path: path, configuration: configuration)
    // Not a file that has replaced the writer's.
    try files.requireInPlace()
    return reader
  }
}
