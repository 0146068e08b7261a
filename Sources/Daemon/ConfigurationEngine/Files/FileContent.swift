#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The reason why a file could not be read.
public enum FileContentError: Error, Hashable {
  /// A system call failed with this `errno`.
  case system(Int32)
  case tooLarge(limit: Int)
  /// A device or a socket, or a pipe where none is accepted: reading could block forever.
  case irregular
  /// A pipe was not closed by its writer in time.
  case unfinished(seconds: Int)

  public static let isMissing = FileContentError.system(ENOENT)
  public static let isForbidden = FileContentError.system(EACCES)
  public static let isFolder = FileContentError.system(EISDIR)

  /// Why the file could not be read, in a few words.
  public var reason: String {
    switch self {
    case .system(let code): "\(String(cString: strerror(code))) (\(Self.names[code] ?? "errno \(code)"))"
    case .tooLarge(let limit): "larger than \(Size.text(limit))"
    case .irregular: "not a regular file"
    case .unfinished(let seconds): "the writer of the pipe did not close it within \(seconds) s"
    }
  }

  private static let names: [Int32: String] = [
    ENOENT: "ENOENT", EACCES: "EACCES", EPERM: "EPERM", EISDIR: "EISDIR", ENOTDIR: "ENOTDIR", ELOOP: "ELOOP",
    ENAMETOOLONG: "ENAMETOOLONG", EIO: "EIO", EMFILE: "EMFILE", ENFILE: "ENFILE", ENXIO: "ENXIO",
  ]
}

/// Reads small files completely.
public enum FileContent {
  /// The maximum size of a configuration file in bytes.
  public static let limit = 1 << 20

  /// How long a pipe's writer may take to close it.
  private static let pipePatience = Duration.seconds(10)

  /// Returns the bytes of the file at `path`, at most `limit`, which is 1 MiB unless given.
  ///
  /// Opening never blocks, and files that are not regular are refused: reading a pipe would wait for a writer.
  ///
  /// - Parameter acceptsPipe: whether a pipe is read until its writer closes it, for at most ten seconds. Used for
  ///   files that a command line names.
  public static func read(
    _ path: String, acceptsPipe: Bool = false, limit: Int = FileContent.limit
  ) throws(FileContentError) -> [UInt8] {
    try readWithStatus(path, acceptsPipe: acceptsPipe, limit: limit).bytes
  }

  /// Returns the bytes of a file as `read` does, and its permission bits and owner, which are those of the same file
  /// even if another one has its name by now.
  public static func readWithStatus(
    _ path: String, acceptsPipe: Bool = false, limit: Int = FileContent.limit
  ) throws(FileContentError) -> (bytes: [UInt8], permissions: UInt32, owner: UInt32) {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    // Opening a socket fails with ENXIO.
    guard file >= 0 else { throw errno == ENXIO ? .irregular : .system(errno) }
    defer { close(file) }
    let (isPipe, permissions, owner) = try status(of: file)
    guard acceptsPipe || !isPipe else { throw .irregular }
    let deadline = ContinuousClock.now + pipePatience
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = chunk.withUnsafeMutableBytes { systemRead(file, $0) }
      if count < 0, errno == EINTR { continue }
      // A pipe whose writer has not opened it yet reads as empty.
      if isPipe, count < 0 && errno == EAGAIN || count == 0 && content.isEmpty {
        guard try awaitData(of: file, until: deadline) else { return (content, permissions, owner) }
        continue
      }
      guard count >= 0 else { throw .system(errno) }
      if count == 0 { return (content, permissions, owner) }
      content += chunk[..<count]
      guard content.count <= limit else { throw .tooLarge(limit: limit) }
    }
  }

  /// Whether `file` is a pipe, its permission bits and its owner. Throws for everything but pipes and regular files.
  private static func status(
    of file: Int32
  ) throws(FileContentError) -> (isPipe: Bool, permissions: UInt32, owner: UInt32) {
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system(errno) }
    let permissions = UInt32(status.st_mode) & 0o7777
    switch status.st_mode & S_IFMT {
    case S_IFREG: return (false, permissions, status.st_uid)
    case S_IFIFO: return (true, permissions, status.st_uid)
    case S_IFDIR: throw .system(EISDIR)
    default: throw .irregular
    }
  }

  /// Waits until the pipe `file` is readable. Returns `false` if its writer has closed it and no data is left.
  private static func awaitData(
    of file: Int32, until deadline: ContinuousClock.Instant
  ) throws(FileContentError) -> Bool {
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

  /// Where the first bytes of `bytes` are that are not UTF-8: the line, and the column in Unicode scalars, from 1.
  static func endOfUTF8(in bytes: [UInt8]) -> (line: Int, column: Int) {
    var parser = Unicode.UTF8.ForwardParser()
    var rest = bytes.makeIterator()
    var (line, column) = (1, 1)
    while case .valid(let scalar) = parser.parseScalar(from: &rest) {
      if Unicode.UTF8.decode(scalar) == "\n" { (line, column) = (line + 1, 1) } else { column += 1 }
    }
    return (line, column)
  }

  /// The permission bits of the file at `path`; `nil` if it does not exist.
  public static func permissions(of path: String) -> UInt32? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt32(status.st_mode) & 0o7777 : nil
  }

  /// The owner of the symbolic link at `path`; `nil` if there is none.
  static func ownerOfLink(_ path: String) -> UInt32? {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK ? status.st_uid : nil
  }

  /// Whether there is a regular file at `path`, or a link to one.
  public static func isRegular(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// The user as which the process runs.
  static var user: UInt32 { geteuid() }

  /// Whether the process runs as root.
  public static var isRoot: Bool { user == 0 }
}
