internal import Glibc

/// Writes files completely or not at all, and never overwrites a file by accident.
enum NewFile {
  /// Writes `bytes` to a file at `path`. The file and its name are on disk when this returns.
  ///
  /// - Parameters:
  ///   - mode: The permissions. The file never has wider ones.
  ///   - isReplacing: Whether an existing file is replaced. If `false` and two calls race, one gets `.exists`.
  static func write(
    _ bytes: [UInt8], to path: String, mode: UInt32, isReplacing: Bool
  ) throws(ClientAuthorityError) {
    let draft = try draft(bytes, for: path, mode: mode)
    defer { discard(draft) }
    try place(draft, at: path, isReplacing: isReplacing)
  }

  /// Writes `bytes` to a file next to `path` and returns its path. Its content is on disk when this returns.
  ///
  /// The caller discards the draft, also after it has placed it.
  static func draft(_ bytes: [UInt8], for path: String, mode: UInt32) throws(ClientAuthorityError) -> String {
    let draft = "\(path).\(getpid()).\(UInt32.random(in: 0 ... .max)).tmp"
    let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    guard file >= 0 else { throw .system(.write, path: path, code: errno) }
    do throws(ClientAuthorityError) { try fill(file, with: bytes, mode: mode, path: path) } catch {
      discard(draft)
      throw error
    }
    return draft
  }

  /// Gives a draft its place, as `write` does.
  static func place(_ draft: String, at path: String, isReplacing: Bool) throws(ClientAuthorityError) {
    // `link` fails if the file exists; `rename` replaces it.
    let code = isReplacing ? rename(draft, path) : link(draft, path)
    guard code == 0 else { throw errno == EEXIST ? .exists(path) : .system(.write, path: path, code: errno) }
    try synchronizeFolder(of: path)
  }

  static func discard(_ draft: String) { unlink(draft) }

  /// Returns the content of the file at `path`, at most 1 MiB.
  static func read(_ path: String) throws(ClientAuthorityError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw errno == ENOENT ? .absent(path) : .system(.read, path: path, code: errno) }
    defer { close(file) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while content.count <= 1 << 20 {
      let count = Glibc.read(file, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system(.read, path: path, code: errno) }
      if count == 0 { return content }
      content += chunk[..<count]
    }
    throw .system(.read, path: path, code: EFBIG)
  }

  /// Creates the folder at `path` and missing parent folders, with mode 0700.
  static func makeFolder(_ path: String) throws(ClientAuthorityError) {
    if try makeOneFolder(path) { return }
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw .system(.createFolder, path: path, code: ENOENT)
    }
    try makeFolder(String(path[..<slash]))
    guard try makeOneFolder(path) else { throw .system(.createFolder, path: path, code: ENOENT) }
  }

  /// Returns `false` if the parent folder is missing.
  private static func makeOneFolder(_ path: String) throws(ClientAuthorityError) -> Bool {
    if mkdir(path, 0o700) == 0 { return true }
    switch errno {
    case ENOENT: return false
    case EEXIST:
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        throw .system(.createFolder, path: path, code: ENOTDIR)
      }
      return true
    default: throw .system(.createFolder, path: path, code: errno)
    }
  }

  private static func synchronizeFolder(of path: String) throws(ClientAuthorityError) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw .system(.open, path: folder, code: errno) }
    defer { close(file) }
    guard fsync(file) == 0 else { throw .system(.write, path: folder, code: errno) }
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Writes and flushes the file, and closes it in every case.
  private static func fill(
    _ file: Int32, with bytes: [UInt8], mode: UInt32, path: String
  ) throws(ClientAuthorityError) {
    defer { close(file) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .system(.write, path: path, code: errno) }
      rest = rest.dropFirst(count)
    }
    guard fchmod(file, mode) == 0, fsync(file) == 0 else { throw .system(.write, path: path, code: errno) }
  }
}
