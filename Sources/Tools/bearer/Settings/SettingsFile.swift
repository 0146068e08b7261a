internal import CLinux
internal import Glibc

/// A file that the settings are read from, or that they name.
public struct SettingsFile: Sendable {
  /// The content.
  public let bytes: [UInt8]
  /// Whether only the owner can read or change the file.
  public let isPrivate: Bool

  /// Creates a file, for tests and other sources.
  public init(bytes: [UInt8], isPrivate: Bool) {
    self.bytes = bytes
    self.isPrivate = isPrivate
  }

  /// Reads the file at `path`, of at most `BearerSettings.mostBytes`.
  public static func read(_ path: String) throws(SettingsFileError) -> SettingsFile {
    // Opening a named pipe must not wait for a writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
    defer { close(descriptor) }
    let mode = file_mode(descriptor)
    guard mode != 0 else { throw .unreadable(String(cString: strerror(errno))) }
    guard mode & S_IFMT == S_IFREG else { throw .unreadable("not a regular file") }
    return SettingsFile(bytes: try content(of: descriptor), isPrivate: mode & 0o066 == 0)
  }

  private static func content(of descriptor: Int32) throws(SettingsFileError) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count == 0 { return bytes }
      if count < 0 {
        if errno == EINTR { continue }
        throw .unreadable(String(cString: strerror(errno)))
      }
      bytes += buffer[..<count]
      guard bytes.count <= BearerSettings.mostBytes else { throw .tooLarge }
    }
  }
}

/// Why a file cannot be read.
public enum SettingsFileError: Error, Sendable, Hashable {
  /// The system refuses: its reason.
  case unreadable(String)
  /// The file has more than `BearerSettings.mostBytes`.
  case tooLarge

  /// The end of a sentence that begins with the file.
  public var reason: String {
    switch self {
    case .unreadable(let reason): "cannot be read: \(reason)"
    case .tooLarge: "is larger than 1 MiB"
    }
  }
}
