internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFADomain
internal import MFAStore

/// The commands on the database as a whole.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Migrates, checks, backs up and restores the database.",
    discussion: """
      Example:

        mfa-backend store check
      """,
    subcommands: [
      StoreMigrateCommand.self, StoreCheckCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
    ])
}

/// The options that select a database and the output format.
struct StoreTarget: ParsableArguments {
  @OptionGroup var database: DatabaseOptions

  @OptionGroup var format: ResultFormat

  /// The database, which need not exist.
  func resolve() throws -> (place: BackendSettings.Database, archive: StoreArchive) {
    let place = try database.reader().readDatabase(needsKeys: false)
    try place.judge()
    try place.judgePassword()
    guard let archive = StoreArchive(place) else {
      throw Failure(
        .configuration, "database: ephemeral data is in the memory of the backend only",
        hint: "name the database with --database or -c FILE")
    }
    return (place, archive)
  }

  /// The database, whose tables have the version of this program.
  func resolveCurrent() throws -> (place: BackendSettings.Database, archive: StoreArchive) {
    let (place, archive) = try resolve()
    let state = try StoreCall.on(place) { try archive.schema() }
    guard state.version > 0 else {
      throw Failure(
        .noInput, "\(place.place): no database of mfa-backend exists here",
        hint: "create it with: mfa-backend store migrate")
    }
    guard state.isCurrent else { throw Failure.otherVersion(state, at: place.place) }
    return (place, archive)
  }
}

extension StoreArchive {
  /// The archive of a database; `nil` for one in memory.
  init?(_ database: BackendSettings.Database) {
    guard case .kept(let url, _, _) = database else { return nil }
    if url.hasPrefix("sqlite:///") {
      self.init(path: String(url.dropFirst("sqlite://".count)))
    } else {
      self.init(postgres: url, password: database.password)
    }
  }
}

/// Runs calls on a database or a backup, and converts their errors.
enum StoreCall {
  static func on<Value>(
    _ place: BackendSettings.Database, file: String = "", _ body: () throws -> Value
  ) throws(Failure) -> Value {
    do {
      return try body()
    } catch let fault as StoreBackup.BackupError {
      throw Failure(fault, of: file)
    } catch let fault as Vault.Unopenable {
      throw Failure(
        .configuration, "\(file): \(fault.reason)",
        hint: "use the keys file of the time of the backup (keys_file or --keys); nothing was changed")
    } catch let fault as MFAStoreError where fault == .inUse {
      throw Failure(
        .unavailable, "\(place.place): in use by a backend or another command",
        hint: "stop every backend on this database, then try again; nothing was changed")
    } catch let fault as MFAStoreError {
      throw Failure(
        .unavailable, "\(place.place): \(fault.reason)",
        hint: place.hintOfFailure)
    } catch {
      throw Failure(of: error)
    }
  }
}

extension Failure {
  /// The tables of the database at `place` have another version than this program.
  static func otherVersion(_ state: StoreArchive.SchemaState, at place: String) -> Failure {
    Failure(
      .noInput, "\(place): its tables have version \(state.version), this mfa-backend needs \(state.newest)",
      hint: "use the mfa-backend version that runs on this database, or migrate it: mfa-backend store migrate")
  }

  /// A failure of the backup file at `file`.
  init(_ fault: StoreBackup.BackupError, of file: String) {
    switch fault {
    case .missing: self.init(.noInput, "\(file): no such file", hint: "name a file of mfa-backend store backup")
    case .exists: self.init(.cannotCreate, "\(file): file exists", hint: "name another file, or remove this one")
    case .unreadable(let reason):
      self.init(
        .noInput, "\(file): cannot be read: \(reason)",
        hint: "name a file that this user can read; nothing was changed")
    case .foreign(let reason):
      self.init(
        .badData, "\(file): not a backup that this mfa-backend can read: \(reason)",
        hint: "name a file of mfa-backend store backup of this version; nothing was changed")
    case .damaged(let reason):
      self.init(.badData, "\(file): damaged: \(reason)", hint: "use another backup; nothing was changed")
    case .unwritable(let reason):
      self.init(
        .cannotCreate, "\(file): cannot be created: \(reason)",
        hint: "name a file in an existing folder that this user can write to, on a disk with room; no file was created")
    }
  }
}
