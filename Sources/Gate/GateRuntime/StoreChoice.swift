package import AttestGate
package import Commands
internal import ConfigurationEngine
internal import Databases
internal import FoundationEssentials
internal import Glibc
internal import PostgresStore
internal import SQLiteStore
package import Settings

extension GateSettings.Store {
  /// Parses the value of the flag `--store`.
  package static func named(_ url: String) throws(Failure) -> Self {
    do throws(Malformed) {
      return try Self(url: url)
    } catch {
      throw Failure(
        .usage, "--store: \(error.reason)", hint: "write sqlite:///var/lib/sallyport/state.db, or postgres://…")
    }
  }

  /// Checks the store settings without opening the store.
  ///
  /// - Throws: `StartError` if libpq rejects the URL, if the path of the SQLite file is that of a folder, or if every
  ///   user of the machine can access the file.
  package func judge() throws(StartError) {
    switch self {
    case .sqlite(let path):
      try Self.requireFile(path)
      try Self.requirePrivate(path)
    case .postgres(let url, let passwordFile): _ = try Self.judgedParameters(url, passwordFile: passwordFile)
    }
  }

  /// Requires that no folder is in the place of the file.
  private static func requireFile(_ path: String) throws(StartError) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
    throw StartError(
      "store.url", "\(path) is a folder",
      hint: "name a file of the gate's own in it, for example sqlite://\(path)/state.db; it may not exist yet")
  }

  /// Requires that other users cannot access the file and its write-ahead log, which hold the identity signing keys
  /// and the challenge keys.
  private static func requirePrivate(_ path: String) throws(StartError) {
    for file in [path, path + "-wal"] {
      guard let permissions = FileContent.permissions(of: file), permissions & 0o006 != 0 else { continue }
      if file == path, isForeign(path) {
        throw StartError(
          "store.url", "\(path) is not a database",
          hint: "name a file of the gate's own, for example sqlite:///var/lib/sallyport/state.db; it may not exist yet")
      }
      let files = file == path ? path : "\(path) \(file)"
      throw StartError(
        "store.url",
        "every user of this machine can access \(file), which holds the identity signing keys and the challenge keys",
        hint: "run chmod 600 \(files), and replace the keys: sallyport store rotate --now --identity")
    }
  }

  /// Whether the file at `path` has content that is not SQLite's. `false` if this process has the file open: closing
  /// another descriptor of it would release SQLite's locks (fcntl(2)).
  private static func isForeign(_ path: String) -> Bool {
    var file = stat()
    guard stat(path, &file) == 0, file.st_size > 0 else { return false }
    let isOpenHere = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd"))?.contains { name in
      var open = stat()
      return stat("/proc/self/fd/" + name, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino
    }
    guard isOpenHere == false else { return false }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let mark = Array("SQLite format 3\0".utf8)
    var start = [UInt8](repeating: 0, count: mark.count)
    let count = read(descriptor, &start, start.count)
    return count >= 0 && start != mark
  }

  /// Requires that the folder of an SQLite file exists. Without the folder, the gate would run and refuse every client.
  func requireFolder() throws(Failure) {
    guard case .sqlite(let path) = self else { return }
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    var status = stat()
    guard stat(folder, &status) != 0, errno == ENOENT || errno == ENOTDIR else { return }
    throw Failure(
      .configuration, "store.url: the folder \(folder) does not exist",
      hint: "create it for the gate's user (install -d -m 700 \(folder)), or correct store.url")
  }

  /// Creates the store of the settings without opening it.
  ///
  /// - Parameters:
  /// - mostWaiting: the number of calls that may wait before further calls are refused.
  /// - isPatient: whether calls have no timeout, for commands that read the whole store.
  package func makeStore(mostWaiting: Int, isPatient: Bool = false) throws(Failure) -> any GateStore {
    switch self {
    case .sqlite(let path): return SQLiteStore(path: path, mostWaiting: mostWaiting)
    case .postgres(let url, let passwordFile):
      var limits = isPatient ? PostgresStore.Limits.patient : PostgresStore.Limits()
      limits.mostWaiting = mostWaiting
      return PostgresStore(try Self.parameters(url, passwordFile: passwordFile), limits: limits)
    }
  }

  /// Creates the archive of the same store.
  package func makeWhole() throws(Failure) -> any StoreArchive {
    switch self {
    case .sqlite(let path): SQLiteArchive(path: path)
    case .postgres(let url, let passwordFile):
      PostgresArchive(try Self.parameters(url, passwordFile: passwordFile))
    }
  }

  private static func parameters(
    _ url: DatabaseURL, passwordFile: String?
  ) throws(Failure) -> ConnectionParameters {
    do throws(StartError) {
      return try judgedParameters(url, passwordFile: passwordFile)
    } catch {
      throw Failure(error)
    }
  }

  private static func judgedParameters(
    _ url: DatabaseURL, passwordFile: String?
  ) throws(StartError) -> ConnectionParameters {
    // Read here only to report a fault of the file: each connection reads it again.
    if let passwordFile { _ = try Self.password(in: passwordFile) }
    do throws(ConnectionParameters.Malformed) {
      return try ConnectionParameters(url: url.text, password: Self.source(passwordFile))
    } catch {
      throw StartError(
        "store.url", "\(url): \(error.reason)",
        hint: "use libpq's form: postgres://user@host:port/database?sslmode=verify-full")
    }
  }

  /// Reads the password for each new connection; `nil` without a file.
  private static func source(_ file: String?) -> ConnectionParameters.PasswordSource? {
    guard let file else { return nil }
    return { () throws(ConnectionParameters.Malformed) -> String in try currentPassword(in: file) }
  }

  /// Returns the first line of the file, for a new connection.
  private static func currentPassword(in file: String) throws(ConnectionParameters.Malformed) -> String {
    do throws(StartError) {
      return try password(in: file)
    } catch {
      throw ConnectionParameters.Malformed(reason: "\(error)")
    }
  }

  /// Returns the first line of the file.
  private static func password(in file: String) throws(StartError) -> String {
    let key = "store.password_file"
    let text = String(decoding: try SettingFile.content(of: file, for: key), as: UTF8.self)
    guard let line = text.split(whereSeparator: \.isNewline).first, !line.utf8.contains(0) else {
      throw StartError(
        key, "\(file) is empty, or contains U+0000", hint: "write the password on the first line")
    }
    return String(line)
  }
}
