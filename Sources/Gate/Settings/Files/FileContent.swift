#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Why a file could not be had.
package enum FileFault: Error, Hashable {
  /// The system call that failed said so; a value of `errno`.
  case system(Int32)
  case tooLarge(limit: Int)
  /// A pipe, a device or a socket: to read it could take for ever.
  case irregular
  /// A pipe did not come to its end in time.
  case unfinished(seconds: Int)

  static let isMissing = FileFault.system(ENOENT)

  package var reason: String {
    switch self {
    case .system(let code): "\(String(cString: strerror(code))) (\(Self.names[code] ?? "errno \(code)"))"
    case .tooLarge(let limit): "it is larger than \(Size.text(limit))"
    case .irregular: "it is not a regular file"
    case .unfinished(let seconds): "it is a pipe that was not written to its end within \(seconds) s"
    }
  }

  private static let names: [Int32: String] = [
    ENOENT: "ENOENT", EACCES: "EACCES", EPERM: "EPERM", EISDIR: "EISDIR", ENOTDIR: "ENOTDIR", ELOOP: "ELOOP",
    ENAMETOOLONG: "ENAMETOOLONG", EIO: "EIO", EMFILE: "EMFILE", ENFILE: "ENFILE", ENXIO: "ENXIO",
  ]
}

/// Small files, read whole.
package enum FileContent {
  /// No file of a configuration is larger.
  static let limit = 1 << 20

  /// How long a pipe may take to come to its end.
  private static let pipePatience = Duration.seconds(10)

  /// The bytes of the file at `path`, at most `limit`.
  ///
  /// Opening does not wait, and what is not a regular file is refused: a pipe in the place of a file would wait for a
  /// writer.
  ///
  /// - Parameter acceptsPipe: whether a pipe is read too, to its end, for ten seconds at most: for files that a command
  ///   line names.
  package static func read(_ path: String, acceptsPipe: Bool = false) throws(FileFault) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    // A socket cannot be opened at all.
    guard file >= 0 else { throw errno == ENXIO ? .irregular : .system(errno) }
    defer { close(file) }
    let isPipe = try isPipe(file)
    guard acceptsPipe || !isPipe else { throw .irregular }
    let deadline = ContinuousClock.now + pipePatience
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = chunk.withUnsafeMutableBytes { systemRead(file, $0) }
      if count < 0, errno == EINTR { continue }
      // A pipe without a writer reads as empty: the writer may not have opened it yet.
      if isPipe, count < 0 && errno == EAGAIN || count == 0 && content.isEmpty {
        guard try awaitData(of: file, until: deadline) else { return content }
        continue
      }
      guard count >= 0 else { throw .system(errno) }
      if count == 0 { return content }
      content += chunk[..<count]
      guard content.count <= limit else { throw .tooLarge(limit: limit) }
    }
  }

  /// Whether `file` is a pipe and not a regular file; other kinds are refused.
  private static func isPipe(_ file: Int32) throws(FileFault) -> Bool {
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system(errno) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return false
    case S_IFIFO: return true
    case S_IFDIR: throw .system(EISDIR)
    default: throw .irregular
    }
  }

  /// Waits for the pipe `file`. Returns whether it can be read: `false` if its writer has closed it and left nothing.
  private static func awaitData(
    of file: Int32, until deadline: ContinuousClock.Instant
  ) throws(FileFault) -> Bool {
    while true {
      let rest = ContinuousClock.now.duration(to: deadline)
      guard rest > .zero else { throw .unfinished(seconds: Int(pipePatience.components.seconds)) }
      var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
      let milliseconds = rest.components.seconds * 1000 + rest.components.attoseconds / 1_000_000_000_000_000
      let count = poll(&entry, 1, Int32(milliseconds) + 1)
      if count > 0 { return entry.revents & Int16(POLLIN) != 0 }
      if count < 0, errno != EINTR { throw .system(errno) }
    }
  }

  private static func systemRead(_ file: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    #if canImport(Glibc)
      Glibc.read(file, buffer.baseAddress, buffer.count)
    #elseif canImport(Musl)
      Musl.read(file, buffer.baseAddress, buffer.count)
    #else
      Darwin.read(file, buffer.baseAddress, buffer.count)
    #endif
  }

  /// The permission bits of the file at `path`; `nil` if there is none.
  package static func permissions(of path: String) -> UInt32? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt32(status.st_mode) & 0o7777 : nil
  }

  /// Whether the process runs as root.
  static var isRoot: Bool { geteuid() == 0 }
}
