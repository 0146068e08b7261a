internal import Glibc

/// Files that the user names.
public enum InputFile {
  /// The content of `path`, or of standard input for `-`; `nil` if `ifPresent` and there is no such file.
  public static func read(_ path: String, largest: Int = 64 << 20, ifPresent: Bool = false) throws(Failure) -> [UInt8]?
  {
    try read(path, largest: largest, ifPresent: ifPresent, until: nil)
  }

  private static func read(
    _ path: String, largest: Int, ifPresent: Bool, until end: ContinuousClock.Instant?
  ) throws(Failure) -> [UInt8]? {
    guard let bytes = try content(path, atMost: largest + 1, ifPresent: ifPresent, until: end) else { return nil }
    guard bytes.count <= largest else { throw Failure(.badData, "\(path) is longer than \(size(largest))") }
    return bytes
  }

  private static func size(_ bytes: Int) -> String {
    if bytes >= 1 << 20 { return "\(bytes >> 20) MiB" }
    return bytes >= 1 << 10 ? "\(bytes >> 10) KiB" : "\(bytes) bytes"
  }

  /// The content of `path`, or of standard input for `-`, up to `count` bytes. What follows is not read.
  public static func beginning(_ path: String, atMost count: Int) throws(Failure) -> [UInt8] {
    try content(path, atMost: count, ifPresent: false, until: nil) ?? []
  }

  /// - Returns: `nil` if `ifPresent` and there is no such file, and if the content has not ended at `end`.
  private static func content(
    _ path: String, atMost limit: Int, ifPresent: Bool, until end: ContinuousClock.Instant?
  ) throws(Failure) -> [UInt8]? {
    let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT, ifPresent { return nil }
      throw Failure(.noInput, "cannot open \(path): \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while bytes.count < limit {
      guard ReadableInput.wait(for: descriptor, until: end) else { return nil }
      let count = Glibc.read(descriptor, &buffer, min(buffer.count, limit - bytes.count))
      // Standard input may be a pipe that does not block, of which another process has read the bytes.
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      guard count >= 0 else { throw Failure(.noInput, "cannot read \(path): \(String(cString: strerror(errno)))") }
      if count == 0 { break }
      bytes += buffer[..<count]
    }
    return bytes
  }

  /// The first line of `path`, without its end: a passphrase or a secret.
  ///
  /// - Throws: `.badData` if the line is not UTF-8. Its bytes would be read as replacement characters, and many
  ///   passphrases as the same one.
  public static func firstLine(_ path: String) throws(Failure) -> String {
    try firstLineInTime(path, until: nil) ?? ""
  }

  /// The first line of `path`, without its end; `nil` if the content has not ended at `end`.
  ///
  /// - Throws: As `firstLine(_:)`.
  public static func firstLineInTime(_ path: String, until end: ContinuousClock.Instant?) throws(Failure) -> String? {
    guard let bytes = try read(path, largest: 1 << 20, ifPresent: false, until: end) else { return nil }
    // The ends of lines that are one byte: LF, VT, FF and CR. Text that follows them is not looked at.
    guard let text = String(validating: bytes.prefix { !(0x0A...0x0D).contains($0) }, as: UTF8.self) else {
      let name = path == "-" ? "standard input" : path
      throw Failure(.badData, "the first line of \(name) is not UTF-8", hint: "save it as UTF-8")
    }
    return String(text.prefix { !$0.isNewline })
  }
}
