public import AttestGate
internal import GRDB
internal import Glibc

extension SQLiteStore {
  public func survey() async throws(StoreError) -> StoreStatistics {
    do {
      return try FileStatistics(path: path).look()
    } catch {
      throw StoreError(error)
    }
  }
}

/// Looks at an SQLite file, and leaves neither a file nor a lock behind.
private struct FileStatistics {
  let path: String

  func look() throws -> StoreStatistics {
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    // SQLite keeps its companions in the folder, so that has to take files, too.
    guard access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 else {
      throw StoreError.unreachable(reason: "the folder \(folder): \(String(cString: strerror(errno)))")
    }
    guard access(path, F_OK) == 0 else { return .absent }
    guard access(path, R_OK | W_OK) == 0 else {
      throw StoreError.unreachable(reason: String(cString: strerror(errno)))
    }
    let migrator = SQLiteSchema.migrator
    return try connection().read { db in
      guard try !migrator.hasBeenSuperseded(db) else {
        throw StoreError.unreachable(reason: "the store was written by a newer version")
      }
      let made = try migrator.appliedMigrations(db).count
      let missing = migrator.migrations.count - made
      return made == 0 ? .absent : missing == 0 ? .current : .outdated(migrations: missing)
    }
  }

  /// A read-only connection. While no process has the file open, even a reader would create the companion files of a
  /// database in WAL mode, unless it is told that the file does not change.
  private func connection() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(1)
    configuration.label = "sallyport.survey"
    let isOpenElsewhere = access(path + "-shm", F_OK) == 0
    return try DatabaseQueue(path: isOpenElsewhere ? path : "file:\(escaped)?immutable=1", configuration: configuration)
  }

  /// The path in a URI of SQLite's: `?`, `#` and `%` mean something there.
  private var escaped: String {
    path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
  }
}
