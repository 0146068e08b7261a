package import AttestGate
internal import FoundationEssentials
internal import Postgres
internal import PostgresStore
package import Preflight
internal import SQLiteStore
package import Settings

extension GateSettings.Store {
  /// Parses the value of the flag `--store`.
  package static func named(_ url: String) throws(SallyportError) -> Self {
    do throws(Malformed) {
      return try Self(url: url)
    } catch {
      throw SallyportError(
        .usage, error: "--store: \(error.reason)", hint: "write sqlite:///var/lib/sallyport/state.db, or postgres://…")
    }
  }

  /// Checks the store settings without opening the store.
  ///
  /// - Throws: `StartError` if libpq rejects the URL, or if every user of the machine can access the SQLite file.
  package func judge() throws(StartError) {
    switch self {
    case .sqlite(let path): try Self.requirePrivate(path)
    case .postgres(let url, let passwordFile): _ = try Self.judgedParameters(url, passwordFile: passwordFile)
    }
  }

  /// Requires that other users cannot access the file and its write-ahead log, which hold the identity signing keys
  /// and the challenge keys.
  private static func requirePrivate(_ path: String) throws(StartError) {
    for file in [path, path + "-wal"] {
      guard let permissions = FileContent.permissions(of: file), permissions & 0o006 != 0 else { continue }
      let files = file == path ? path : "\(path) \(file)"
      throw StartError(
        "store.url",
        "every user of this machine can access \(file), which holds the identity signing keys and the challenge keys",
        hint: "run chmod 600 \(files), and replace the keys: sallyport store rotate --now")
    }
  }

  /// Creates the store of the settings without opening it.
  ///
  /// - Parameters:
  /// - mostWaiting: the number of calls that may wait before further calls are refused.
  /// - isPatient: whether calls have no timeout, for commands that read the whole store.
  package func makeStore(mostWaiting: Int, isPatient: Bool = false) throws(SallyportError) -> any GateStore {
    switch self {
    case .sqlite(let path): return SQLiteStore(path: path, mostWaiting: mostWaiting)
    case .postgres(let url, let passwordFile):
      var limits = isPatient ? PostgresStore.Limits.patient : PostgresStore.Limits()
      limits.mostWaiting = mostWaiting
      return PostgresStore(try Self.parameters(url, passwordFile: passwordFile), limits: limits)
    }
  }

  /// Creates the archive of the same store.
  package func makeWhole() throws(SallyportError) -> any StoreArchive {
    switch self {
    case .sqlite(let path): SQLiteArchive(path: path)
    case .postgres(let url, let passwordFile):
      PostgresArchive(try Self.parameters(url, passwordFile: passwordFile))
    }
  }

  private static func parameters(
    _ url: StoreURL, passwordFile: String?
  ) throws(SallyportError) -> ConnectionParameters {
    do throws(StartError) {
      return try judgedParameters(url, passwordFile: passwordFile)
    } catch {
      throw SallyportError(error)
    }
  }

  private static func judgedParameters(
    _ url: StoreURL, passwordFile: String?
  ) throws(StartError) -> ConnectionParameters {
    let password: String? = if let passwordFile { try Self.password(in: passwordFile) } else { nil }
    do throws(ConnectionParameters.Malformed) {
      return try ConnectionParameters(url: url.text, password: password)
    } catch {
      throw StartError(
        "store.url", "\(url): \(error.reason)",
        hint: "use libpq's form: postgres://user@host:port/database?sslmode=verify-full")
    }
  }

  /// Returns the first line of the file.
  private static func password(in file: String) throws(StartError) -> String {
    guard let bytes = try? FileContent.read(file),
      let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first
    else {
      throw StartError(
        "store.password_file", "\(file) cannot be read, or is empty",
        hint: "write the password on the first line")
    }
    return String(line)
  }
}
