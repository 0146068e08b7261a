internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// Reads an export line by line and checks that it is complete.
final class ExportReader {
  private let lines: LineReader
  private let digest = RunningSHA256()
  private var count = 0
  /// The number of keys when the export began.
  let expected: Int

  /// Reads the header.
  ///
  /// - Throws: `.foreign` if the header is missing or has another format or version.
  init(_ lines: LineReader) throws(ImportError) {
    self.lines = lines
    guard let line = try lines.next(), let header = LineJSON.value(HeaderLine.self, in: line),
      header.format == ExportFormat.name, header.version == ExportFormat.version
    else { throw .foreign }
    expected = header.count
    digest.update(line)
  }

  /// Returns the next key line, undecoded, and its line number; `nil` at the end of a complete export.
  func next() throws(ImportError) -> (bytes: [UInt8], line: Int)? {
    guard let line = try lines.next() else { throw .truncated(afterLine: lines.number) }
    if line.starts(with: TrailerLine.beginning) {
      guard let trailer = LineJSON.value(TrailerLine.self, in: line), trailer.count == count,
        trailer.sha256 == Hex.encode(digest.finish())
      else { throw .altered }
      guard try lines.next() == nil else { throw .malformed(line: lines.number, "follows the trailer") }
      return nil
    }
    digest.update(line)
    count += 1
    return (line, lines.number)
  }
}
