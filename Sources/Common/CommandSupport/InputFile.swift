internal import Glibc

/// Files that the user names.
public enum InputFile {
  /// The content of `path`, or of standard input for `-`; `nil` if `ifPresent` and there is no such file.
  public static func read(_ path: String, largest: Int = 64 << 20, ifPresent: Bool = false) throws(Failure) -> [UInt8]?
  {
    let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT, ifPresent { return nil }
      throw Failure(.noInput, "cannot open \(path): \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Failure(.noInput, "cannot read \(path): \(String(cString: strerror(errno)))") }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= largest else {
        throw Failure(.badData, "\(path) is longer than \(largest >> 20) MiB")
      }
    }
  }

  /// The first line of `path`, without its end: a passphrase or a secret.
  public static func firstLine(_ path: String) throws(Failure) -> String {
    let bytes = try read(path, largest: 1 << 20) ?? []
    let line = String(decoding: bytes, as: UTF8.self).split(
      maxSplits: 1, omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    return line.first.map(String.init) ?? ""
  }
}
