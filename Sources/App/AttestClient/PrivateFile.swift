#if !canImport(Darwin)
  internal import Glibc

  /// Files that only their owner reads: mode 0600, replaced in one step.
  package enum PrivateFile {
    /// The error of a file operation, with the operation, the path and the system's reason.
    package struct AccessError: Error, Sendable, Hashable, CustomStringConvertible {
      package let action: String
      package let path: String
      /// `errno`.
      package let code: Int32

      package var description: String { "cannot \(action) \(path): \(String(cString: strerror(code)))" }
      /// Whether the path does not exist.
      package var isAbsence: Bool { code == ENOENT || code == ENOTDIR }
    }

    /// The whole content of the file at `path`, at most `limit` bytes; a longer one is a fault (`EFBIG`).
    package static func read(_ path: String, limit: Int = 1 << 20) throws(AccessError) -> [UInt8] {
      let file = open(path, O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { throw AccessError(action: "read", path: path, code: errno) }
      defer { close(file) }
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = Glibc.read(file, &chunk, chunk.count)
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw AccessError(action: "read", path: path, code: errno) }
        if count == 0 { return bytes }
        bytes += chunk[..<count]
        guard bytes.count <= limit else { throw AccessError(action: "read", path: path, code: EFBIG) }
      }
    }

    /// Replaces the file at `path` by `bytes`. A reader sees the old content or the new, a crash leaves one of them,
    /// and the new one is on disk when this returns.
    package static func write(_ bytes: [UInt8], to path: String, mode: UInt32 = 0o600) throws(AccessError) {
      let temporary = "\(path).\(getpid()).\(UInt32.random(in: 0 ... .max)).tmp"
      let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
      guard file >= 0 else { throw AccessError(action: "create", path: temporary, code: errno) }
      do throws(AccessError) {
        defer { close(file) }
        try fill(file, with: bytes, path: temporary)
        guard fchmod(file, mode) == 0 else { throw AccessError(action: "protect", path: temporary, code: errno) }
        guard fsync(file) == 0 else { throw AccessError(action: "write", path: temporary, code: errno) }
        guard rename(temporary, path) == 0 else { throw AccessError(action: "replace", path: path, code: errno) }
      } catch {
        unlink(temporary)
        throw error
      }
      try synchronizeFolder(of: path)
    }

    /// Checks that `write` can replace the file at `path`, as far as that is known before. Changes nothing.
    package static func checkWriting(to path: String) throws(AccessError) {
      guard access((parent(of: path) ?? ".") + "/.", W_OK | X_OK) == 0 else {
        throw AccessError(action: "create", path: path, code: errno)
      }
      var status = stat()
      guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
      throw AccessError(action: "replace", path: path, code: EISDIR)
    }

    /// Gives the file or folder at `path` another name, on disk when this returns. A file there before is replaced.
    package static func move(_ path: String, to other: String) throws(AccessError) {
      guard rename(path, other) == 0 else { throw AccessError(action: "move", path: path, code: errno) }
      try synchronizeFolder(of: other)
    }

    /// Removes the file at `path`; it may be gone already.
    package static func remove(_ path: String) throws(AccessError) {
      guard unlink(path) == 0 || errno == ENOENT else { throw AccessError(action: "remove", path: path, code: errno) }
    }

    /// Removes the empty folder at `path`; it may be gone already.
    package static func removeFolder(_ path: String) throws(AccessError) {
      guard rmdir(path) == 0 || errno == ENOENT else { throw AccessError(action: "remove", path: path, code: errno) }
    }

    /// Makes the folder at `path` and its parents, with mode 0700. An existing folder is not changed.
    package static func makeFolder(_ path: String) throws(AccessError) {
      if mkdir(path, 0o700) == 0 { return }
      switch errno {
      case EEXIST:
        var status = stat()
        guard stat(path, &status) == 0 else { throw AccessError(action: "create", path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw AccessError(action: "create", path: path, code: ENOTDIR) }
      case ENOENT:
        guard let parent = parent(of: path), parent != path else {
          throw AccessError(action: "create", path: path, code: ENOENT)
        }
        try makeFolder(parent)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
          throw AccessError(action: "create", path: path, code: errno)
        }
      default: throw AccessError(action: "create", path: path, code: errno)
      }
    }

    private static func fill(_ file: Int32, with bytes: [UInt8], path: String) throws(AccessError) {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { throw AccessError(action: "write", path: path, code: errno) }
        rest = rest.dropFirst(count)
      }
    }

    /// Makes the rename itself durable.
    private static func synchronizeFolder(of path: String) throws(AccessError) {
      let folder = parent(of: path) ?? "."
      let file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard file >= 0 else { throw AccessError(action: "open", path: folder, code: errno) }
      defer { close(file) }
      guard fsync(file) == 0 else { throw AccessError(action: "write", path: folder, code: errno) }
    }

    private static func parent(of path: String) -> String? {
      guard let slash = path.lastIndex(of: "/") else { return nil }
      let parent = path[..<slash]
      return parent.isEmpty ? "/" : String(parent)
    }
  }
#endif
