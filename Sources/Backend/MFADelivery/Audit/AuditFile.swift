internal import Foundation
internal import Glibc
internal import MFADomain

/// The file of an export, one entry a line as JSON, and its rotated predecessors `FILE.1`, `FILE.2`, …
///
/// The number of the last entry is in the file, and in `FILE.position` for a file that was moved away.
final class AuditFile {
  private let path: String
  private let largest: Int?
  private let kept: Int
  private var descriptor: Int32 = -1
  private var size = 0
  /// The number of the last entry that was written; `nil` if neither file tells it.
  private(set) var position: Int64?

  /// Opens the file for further entries, and reads the position.
  ///
  /// - Parameters:
  ///   - largest: the size in bytes from which a file is rotated; `nil` for none.
  ///   - kept: the number of rotated files.
  /// - Throws: `AuditExportFault`
  init(path: String, largest: Int?, kept: Int) throws(AuditExportFault) {
    self.path = path
    self.largest = largest
    self.kept = kept
    try open()
    position = [lastOfFile(), lastOfPosition()].compactMap(\.self).max()
  }

  deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

  private func open() throws(AuditExportFault) {
    descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw .system("cannot open \(path)", errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw AuditExportFault(reason: "\(path) is not a file")
    }
    size = Int(status.st_size)
    // The rest of a line that a full disk cut off: the entry is written again, on a line of its own.
    if size > 0, lastBytes(1) != [0x0A] { try append([0x0A]) }
  }

  /// Writes entries, and returns when they are on the disk.
  func write(_ entries: [AuditExports.Entry]) throws(AuditExportFault) {
    guard let last = entries.last else { return }
    let lines = Array(entries.map { AuditLine.json($0.entry, hash: $0.hash) + "\n" }.joined().utf8)
    if let largest, size > 0, size + lines.count > largest { try rotate() }
    try append(lines)
    guard fdatasync(descriptor) == 0 else { throw .system("cannot write \(path)", errno) }
    position = last.entry.sequence
    keepPosition(last.entry.sequence)
  }

  /// Goes on with the entry after `sequence`.
  func begin(after sequence: Int64) {
    position = sequence
    keepPosition(sequence)
  }

  /// Stores the position. Without it, the last line of the file tells it.
  private func keepPosition(_ sequence: Int64) {
    try? Data("\(sequence)\n".utf8).write(to: URL(filePath: path + ".position"), options: .atomic)
  }

  private func append(_ bytes: [UInt8]) throws(AuditExportFault) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        let number = errno
        // A part of a line would be read as an entry.
        if rest.count < bytes.count { _ = ftruncate(descriptor, off_t(size)) }
        throw .system("cannot write \(path)", number)
      }
      rest = rest.dropFirst(count)
    }
    size += bytes.count
  }

  /// Renames `FILE` to `FILE.1`, and each older one to the next number. The oldest is removed.
  private func rotate() throws(AuditExportFault) {
    for number in stride(from: kept - 1, through: 1, by: -1) {
      _ = rename("\(path).\(number)", "\(path).\(number + 1)")
    }
    let isMoved = kept > 0 ? rename(path, path + ".1") == 0 : unlink(path) == 0
    guard isMoved else { throw .system("cannot rotate \(path)", errno) }
    Glibc.close(descriptor)
    descriptor = -1
    try open()
  }

  private func lastBytes(_ count: Int) -> [UInt8] {
    guard let file = FileHandle(forReadingAtPath: path) else { return [] }
    try? file.seek(toOffset: UInt64(max(0, size - count)))
    return Array((try? file.read(upToCount: count)) ?? Data())
  }

  /// The number of the entry of the last line.
  private func lastOfFile() -> Int64? {
    let lines = String(decoding: lastBytes(1 << 16), as: UTF8.self).split(separator: "\n")
    let start = "{\"sequence\":"
    // A line that was cut off is no entry.
    return lines.last { $0.hasPrefix(start) && $0.hasSuffix("}") }.flatMap { line in
      Int64(line.dropFirst(start.count).prefix { $0.isASCII && $0.isNumber })
    }
  }

  private func lastOfPosition() -> Int64? {
    guard let file = FileHandle(forReadingAtPath: path + ".position"), let bytes = try? file.read(upToCount: 32) else {
      return nil
    }
    return Int64(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
  }
}

/// Why an export does not go on for the moment.
public struct AuditExportFault: Error, Sendable, Hashable {
  /// The reason for the log.
  public let reason: String

  init(reason: String) { self.reason = reason }

  static func system(_ what: String, _ number: Int32) -> AuditExportFault {
    AuditExportFault(reason: "\(what): \(String(cString: strerror(number)))")
  }
}
