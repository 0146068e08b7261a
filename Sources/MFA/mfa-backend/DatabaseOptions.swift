internal import ArgumentParser
internal import ByteCoding
internal import Foundation
internal import Glibc
internal import Logging
internal import MFADomain
internal import MFASettings
internal import MFAStore
internal import Postgres

/// Which database a command works on, and the keys that its secrets are sealed under.
struct DatabaseOptions: ParsableArguments {
  @Option(name: [.short, .customLong("config")], help: "The configuration file (YAML).")
  var config: String?

  @Option(help: "sqlite:///path or postgres://user@host/database")
  var database: String?

  @Flag(help: "Keep everything in memory, and forget it at the end.")
  var ephemeral = false

  @Option(
    name: .customLong("keys"),
    help: "JSON file with the key-encryption keys: [{\"name\": …, \"key\": 32 bytes in base64}], the current one first."
  )
  var keysFile: String?

  func validate() throws {
    guard !ephemeral || database == nil else { throw ValidationError("name either --database or --ephemeral") }
  }

  var flags: [SettingFlag] {
    [
      SettingFlag("--database", "database", database),
      SettingFlag("--ephemeral", "database", ephemeral ? "ephemeral" : nil),
      SettingFlag("--keys", "keys_file", keysFile),
    ].compactMap(\.self)
  }

  /// The settings, with what other flags say.
  func reader(with more: [SettingFlag] = []) -> SettingsReader {
    SettingsReader(file: config, environment: ProcessInfo.processInfo.environment, flags: flags + more)
  }

  /// The database, which exists, and its keys.
  func open() throws -> (store: any Store, keys: KeyEncryptionKeys) {
    let place = try reader().readDatabase()
    return (try place.openExisting(), try place.keys())
  }
}

extension BackendSettings.Database {
  /// Opens what `run` has made: a mistyped path is a fault, and no new database.
  func openExisting() throws -> any Store {
    let hint = "mfa-backend run makes it at its first start"
    if let path = sqlitePath, access(path, F_OK) != 0 {
      throw CommandFault(.noInput, "there is no database at \(path): \(String(cString: strerror(errno)))", hint: hint)
    }
    do {
      return try open(makesTables: false)
    } catch let fault as StoreFault where fault == .noTables {
      throw CommandFault(.noInput, "the database has no tables of the backend's", hint: hint)
    }
  }

  private var sqlitePath: String? {
    guard case .kept(let url, _) = self, url.hasPrefix("sqlite:///") else { return nil }
    return String(url.dropFirst("sqlite://".count))
  }

  /// - Parameters:
  ///   - makesTables: whether an empty database gets its tables; otherwise it is `StoreFault.noTables`.
  ///   - logger: where statements are logged, without their values; `nil` for nowhere.
  func open(makesTables: Bool = true, logger: Logger? = nil) throws -> any Store {
    let trace = logger.map { logger in
      StatementTrace { sql, duration in
        logger.debug("statement", metadata: ["sql": "\(sql)", "ms": "\(duration / .milliseconds(1))"])
      }
    }
    switch self {
    case .ephemeral: return try SQLiteMFAStore.ephemeral(trace: trace)
    case .kept(let url, _) where url.hasPrefix("sqlite:///"):
      return try SQLiteMFAStore(
        path: String(url.dropFirst("sqlite://".count)), makesTables: makesTables, trace: trace)
    case .kept(let url, _):
      do throws(ConnectionParameters.Malformed) {
        _ = try ConnectionParameters(url: url)
      } catch {
        throw CommandFault(
          .configuration, "database: \(error.reason)",
          hint: "write / : @ ? and # in user and password as %2F %3A %40 %3F %23")
      }
      return try PostgresMFAStore(url: url, makesTables: makesTables, trace: trace)
    }
  }

  private static let keysHint = "mfa-backend keys make prints such a file"

  func keys() throws -> KeyEncryptionKeys {
    guard case .kept(_, let file) = self else { return .ephemeral(.system) }
    struct Entry: Decodable { let name: String, key: String }
    let bytes = try InputFile.readSecret(file, "the keys file")
    guard let entries = try? JSONDecoder().decode([Entry].self, from: bytes) else {
      throw CommandFault(.configuration, "\(file): no JSON list of objects with name and key", hint: Self.keysHint)
    }
    guard Set(entries.map(\.name)).count == entries.count else {
      throw CommandFault(
        .configuration, "\(file): two keys have one name",
        hint: "make the new one again by mfa-backend keys make, which gives it a name of its own")
    }
    do throws(KeyEncryptionKeys.Malformed) {
      return try KeyEncryptionKeys(entries.map { ($0.name, Base64.decode($0.key) ?? []) })
    } catch {
      throw CommandFault(.configuration, "\(file): \(error.reason)", hint: Self.keysHint)
    }
  }
}
