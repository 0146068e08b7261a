internal import Glibc

/// Files that are written whole or not at all, and never over others by accident.
enum NewFile {
  /// Writes `bytes` to a file at `path`, on the disk when this returns.
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
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
      throw .system("make the folder", path: path, code: errno)
    }
    try makeFolder(String(path[..<slash]))
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw .system("make the folder", path: path, code: errno)
    }
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
