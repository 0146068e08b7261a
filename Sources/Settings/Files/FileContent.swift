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

  static let isMissing = FileFault.system(ENOENT)

  package var reason: String {
    switch self {
    case .system(let code): "\(String(cString: strerror(code))) (\(Self.names[code] ?? "errno \(code)"))"
    case .tooLarge(let limit): "it is larger than \(Size.text(limit))"
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

  /// The bytes of the file at `path`, at most `limit`. Pipes are read to their end.
  package static func read(_ path: String) throws(FileFault) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .system(errno) }
    defer { close(file) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = chunk.withUnsafeMutableBytes { systemRead(file, $0) }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .system(errno) }
      if count == 0 { return content }
      content += chunk[..<count]
      guard content.count <= limit else { throw .tooLarge(limit: limit) }
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
