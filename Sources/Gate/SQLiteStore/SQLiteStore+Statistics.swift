public import AttestGate
internal import GRDB
internal import Glibc

extension SQLiteStore {
  public func statistics() async throws(StoreError) -> StoreStatistics {
    do {
      return try FileStatistics(path: path).look()
    } catch {
      throw StoreError(error)
    }
  }
}

/// Inspects an SQLite file without creating files or leaving locks.
private struct FileStatistics {
  let path: String

  func look() throws -> StoreStatistics {
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    // SQLite creates its companion files in the folder, so the folder must be writable.
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

  /// Opens a read-only connection. If no process has the file open, even a reader of a WAL database would create the
  /// companion files, unless the file is declared immutable.
  private func connection() throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(1)
    configuration.label = "sallyport.statistics"
    let isOpenElsewhere = access(path + "-shm", F_OK) == 0
    let name = isOpenElsewhere ? path : ImmutableFile.name(of: path)
    return try DatabaseQueue(path: name, configuration: configuration)
  }
}

/// A database file that no process changes. SQLite reads it without locks and companion files.
enum ImmutableFile {
  /// The name under which SQLite opens the file at `path`: a URI, in which `?`, `#` and `%` are special.
  static func name(of path: String) -> String {
    let escaped = path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
    return "file:\(escaped)?immutable=1"
  }
}
