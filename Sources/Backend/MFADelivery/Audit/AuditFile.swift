internal import ByteCoding
internal import Foundation
internal import Glibc
internal import MFADomain

/// The file of an export, one entry a line as JSON, and its rotated predecessors `FILE.1`, `FILE.2`, …
///
/// Number and hash of the last entry are in the file, and in `FILE.position` for a file that was moved away.
final class AuditFile {
  private let path: String
  private let largest: Int?
  private let kept: Int
  private var descriptor: Int32 = -1
  private var size = 0
  /// The last entry that was written; `nil` if neither file tells it.
  private(set) var position: AuditPosition?
  /// The number of bytes at the end of the file that are searched for entries.
  private static let searched = 1 << 18

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
    position = [entries(in: 1 << 16).last, storedPosition()].compactMap(\.self).max { $0.sequence < $1.sequence }
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
    begin(after: AuditPosition(sequence: last.entry.sequence, hash: last.hash))
  }

  /// Continues with the entry after `place`, and stores this. Without a stored position, the last line tells it.
  func begin(after place: AuditPosition) {
    position = place
    let text = "\(place.sequence) \(Hex.encode(place.hash))\n"
    try? Data(text.utf8).write(to: URL(filePath: path + ".position"), options: .atomic)
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

  /// The entries that the file is known to have, and the stored position. After a restore, one of them is the last one
  /// that file and history share.
  func positions() -> [AuditPosition] { entries(in: Self.searched) + [storedPosition()].compactMap(\.self) }

  /// The entries of the last `count` bytes. A line that was cut off is no entry.
  private func entries(in count: Int) -> [AuditPosition] {
    String(decoding: lastBytes(count), as: UTF8.self).split(separator: "\n").compactMap { text in
      guard let line = try? JSONDecoder().decode(Line.self, from: Data(text.utf8)), let hash = Hex.decode(line.hash)
      else { return nil }
      return AuditPosition(sequence: line.sequence, hash: hash)
    }
  }

  /// The parts of a line that name its entry.
  private struct Line: Decodable {
    let sequence: Int64
    let hash: String
  }

  private func storedPosition() -> AuditPosition? {
    guard let file = FileHandle(forReadingAtPath: path + ".position"), let bytes = try? file.read(upToCount: 128) else {
      return nil
    }
    let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    guard words.count == 2, let sequence = Int64(words[0]), sequence >= 0, let hash = Hex.decode(words[1]) else {
      return nil
    }
    return AuditPosition(sequence: sequence, hash: hash)
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
