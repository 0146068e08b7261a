internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import ConfigurationEngine
internal import Databases
internal import Foundation
internal import Glibc
internal import Logging
internal import MFADomain
internal import MFAStore

/// The database of a command, and the keys that seal its secrets.
struct DatabaseOptions: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: "The configuration file (YAML). Default: $MFA_BACKEND_CONFIG, then /etc/mfa/mfa.yaml.")
  var config: String?

  @Option(help: "sqlite:///path or postgres://user@host/database")
  var database: String?

  @Option(
    name: .customLong("database-password-file"),
    help: "File with the password for PostgreSQL on its first line. It is read for each new connection.")
  var passwordFile: String?

  @Flag(help: "Keep all data in memory and lose it at exit.")
  var ephemeral = false

  @Option(
    name: .customLong("keys"),
    help: "JSON file with the key-encryption keys: [{\"name\": …, \"key\": 32 bytes in base64}], newest first."
  )
  var keysFile: String?

  func validate() throws {
    guard !ephemeral || database == nil else { throw ValidationError("use either --database or --ephemeral, not both") }
  }

  var flags: [FlagSetting] {
    [
      FlagSetting("--database", "database", database),
      FlagSetting("--database-password-file", "database_password_file", passwordFile),
      FlagSetting("--ephemeral", "database", ephemeral ? "ephemeral" : nil),
      FlagSetting("--keys", "keys_file", keysFile),
    ].compactMap(\.self)
  }

  /// A reader for the settings, with the flags `more` of the command.
  func reader(with more: [FlagSetting] = []) -> SettingsReader {
    let environment = ProcessInfo.processInfo.environment
    // A command line that names a database does not describe the installed backend.
    let search = ConfigurationSearch.ofBackend(environment)
    let file = config ?? (database == nil && !ephemeral ? search.file : search.namedFile)
    return SettingsReader(file: file, environment: environment, flags: flags + more)
  }

  /// Opens the existing database and reads its keys.
  func open() throws -> (store: any Store, keys: KeyEncryptionKeys) {
    let place = try reader().readDatabase()
    return (try place.openExisting(), try place.keys())
  }
}

extension BackendSettings.Database {
  /// Opens a database that `run` created, and leaves its tables as they are. A mistyped path is an error and creates
  /// no new database.
  func openExisting() throws -> any Store {
    let hint = "mfa-backend run creates it at its first start"
    if let path = sqlitePath, access(path, F_OK) != 0 {
      let number = errno
      throw Failure(
        .noInput, "no database at \(path): \(String(cString: strerror(number)))",
        hint: number == ENOENT ? hint : hintOfFailure)
    }
    do {
      return try open(changesTables: false)
    } catch let fault as MFAStoreError where fault == .noTables {
      throw Failure(.noInput, "the database has no tables of mfa-backend", hint: hint)
    }
  }

  /// Parses the URL as a connection would.
  func judge() throws(Failure) {
    guard case .kept(let url, _, _) = self, !url.hasPrefix("sqlite:") else { return }
    do throws(ConnectionParameters.Malformed) {
      _ = try ConnectionParameters(url: url)
    } catch {
      throw Failure(
        .configuration, "database: \(error.reason)",
        hint: "in user and password, write / : @ ? # as %2F %3A %40 %3F %23")
    }
  }

  /// Reads the password of the PostgreSQL user for each new connection; `nil` without a password file.
  var password: DatabasePassword? {
    guard case .kept(_, _, let file?) = self else { return nil }
    return {
      do throws(Failure) {
        return try InputFile.secretLine(file, "the database's password file", warns: false)
      } catch {
        throw MFAStoreError(reason: error.message)
      }
    }
  }

  /// Reads the password file, if there is one, to report its faults.
  func judgePassword() throws(Failure) {
    guard case .kept(_, _, let file?) = self else { return }
    _ = try InputFile.secretLine(file, "the database's password file")
  }

  /// What to do when the database cannot be used.
  var hintOfFailure: String {
    sqlitePath == nil
      ? "check the URL, and that the server runs and this user may connect"
      : "check the path, and that this user may read and write the file and its folder"
  }

  /// The path of a SQLite file; `nil` for another database.
  var sqlitePath: String? {
    guard case .kept(let url, _, _) = self, url.hasPrefix("sqlite:///") else { return nil }
    return String(url.dropFirst("sqlite://".count))
  }

  /// Opens the database.
  ///
  /// - Parameters:
  ///   - changesTables: whether an empty database gets its tables, and an older one is migrated. Otherwise, an empty
  ///     one is refused with `MFAStoreError.noTables`, and an older one with `Failure`.
  ///   - logger: the log for SQL statements without values; `nil` for none.
  func open(changesTables: Bool = true, logger: Logger? = nil) throws -> any Store {
    let trace = logger.map { logger in
      StatementTrace { sql, duration in
        logger.debug("statement", metadata: ["sql": "\(sql)", "ms": .stringConvertible(duration / .milliseconds(1))])
      }
    }
    switch self {
    case .ephemeral: return try SQLiteMFAStore.ephemeral(trace: trace)
    case .kept(let url, _, _) where url.hasPrefix("sqlite:///"):
      if !changesTables { try refuseOlder() }
      return try SQLiteMFAStore(
        path: String(url.dropFirst("sqlite://".count)), makesTables: changesTables, trace: trace)
    case .kept(let url, _, _):
      try judge()
      try judgePassword()
      if !changesTables { try refuseOlder() }
      return try PostgresMFAStore(url: url, password: password, makesTables: changesTables, trace: trace)
    }
  }

  /// Refuses a database whose tables have an older version. A command that migrated it would change it under a running
  /// backend of that version, which then could not start again.
  private func refuseOlder() throws {
    guard let state = try StoreArchive(self)?.schema(), state.version > 0, state.version < state.newest else { return }
    throw Failure.otherVersion(state, at: place)
  }

  private static let keysHint = "create a keys file with: mfa-backend keys make"

  /// Reads the keys that seal the data keys. They are on the disk before the first of them seals anything.
  func keys() throws -> KeyEncryptionKeys {
    guard case .kept(_, let file, _) = self else { return .ephemeral(.system) }
    struct Entry: Decodable { let name: String, key: String }
    let bytes = try InputFile.readSecret(file, "the keys file")
    guard let entries = try? JSONDecoder().decode([Entry].self, from: bytes) else {
      throw Failure(.configuration, "\(file): not a JSON list of objects with name and key", hint: Self.keysHint)
    }
    guard Set(entries.map(\.name)).count == entries.count else {
      throw Failure(
        .configuration, "\(file): two keys have the same name",
        hint: "create the new key again with mfa-backend keys make, which chooses a unique name")
    }
    try InputFile.flush(file, "the keys file")
    do throws(KeyEncryptionKeys.Malformed) {
      return try KeyEncryptionKeys(entries.map { ($0.name, Base64.decode($0.key) ?? []) })
    } catch {
      throw Failure(.configuration, "\(file): \(error.reason)", hint: Self.keysHint)
    }
  }
}
