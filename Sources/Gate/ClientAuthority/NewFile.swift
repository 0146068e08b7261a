internal import Glibc

/// Files that are written whole or not at all, and never over others by accident.
enum NewFile {
  /// Writes `bytes` to a file at `path`; it and its name are on the disk when this returns.
  ///
  /// - Parameters:
  ///   - mode: the permissions; at no time are there more.
  ///   - isReplacing: whether a file that is there already gives way. Of two that write at once without it, one is
  ///     refused.
  static func write(
    _ bytes: [UInt8], to path: String, mode: UInt32, isReplacing: Bool
  ) throws(ClientAuthorityFault) {
    let temporary = "\(path).\(getpid()).\(UInt32.random(in: 0 ... .max)).tmp"
    let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
    guard file >= 0 else { throw .system("write", path: path, code: errno) }
    defer { unlink(temporary) }
    try fill(file, with: bytes, mode: mode, path: path)
    // A link is refused where there is something, and a renaming is not.
    let code = isReplacing ? rename(temporary, path) : link(temporary, path)
    guard code == 0 else { throw errno == EEXIST ? .exists(path) : .system("write", path: path, code: errno) }
    try synchronizeFolder(of: path)
  }

  /// The content of the file at `path`, at most a mebibyte.
  static func read(_ path: String) throws(ClientAuthorityFault) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw errno == ENOENT ? .absent(path) : .system("read", path: path, code: errno) }
    defer { close(file) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while content.count <= 1 << 20 {
      let count = Glibc.read(file, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system("read", path: path, code: errno) }
      if count == 0 { return content }
      content += chunk[..<count]
    }
    throw .system("read", path: path, code: EFBIG)
  }

  /// Makes the folder at `path` and those above it, where there are none: for its owner alone.
  static func makeFolder(_ path: String) throws(ClientAuthorityFault) {
    if try makeOneFolder(path) { return }
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw .system("make the folder", path: path, code: ENOENT)
    }
    try makeFolder(String(path[..<slash]))
    guard try makeOneFolder(path) else { throw .system("make the folder", path: path, code: ENOENT) }
  }

  /// `false` if the folder above `path` is missing.
  private static func makeOneFolder(_ path: String) throws(ClientAuthorityFault) -> Bool {
    if mkdir(path, 0o700) == 0 { return true }
    switch errno {
    case ENOENT: return false
    case EEXIST:
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        throw .system("make the folder", path: path, code: ENOTDIR)
      }
      return true
    default: throw .system("make the folder", path: path, code: errno)
    }
  }

  private static func synchronizeFolder(of path: String) throws(ClientAuthorityFault) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard file >= 0 else { throw .system("open", path: folder, code: errno) }
    defer { close(file) }
    guard fsync(file) == 0 else { throw .system("write", path: folder, code: errno) }
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Closes the file, whatever happens.
  private static func fill(
    _ file: Int32, with bytes: [UInt8], mode: UInt32, path: String
  ) throws(ClientAuthorityFault) {
    defer { close(file) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .system("write", path: path, code: errno) }
      rest = rest.dropFirst(count)
    }
    guard fchmod(file, mode) == 0, fsync(file) == 0 else { throw .system("write", path: path, code: errno) }
  }
}
