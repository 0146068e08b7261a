internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// Reads an export line by line, and sees whether it is whole.
final class ExportReader {
  private let lines: LineReader
  private let digest = RunningSHA256()
  private var count = 0
  /// How many keys there were when the export began.
  let expected: Int

  /// Reads the header.
  init(_ lines: LineReader) throws(ImportFault) {
    self.lines = lines
    guard let line = try lines.next(), let header = LineJSON.value(HeaderLine.self, in: line),
      header.format == ExportFormat.name, header.version == ExportFormat.version
    else { throw .foreign }
    expected = header.count
    digest.update(line)
  }

  /// The next key as it stands there, and its line; `nil` at the end of an export that is whole.
  func next() throws(ImportFault) -> (bytes: [UInt8], line: Int)? {
    guard let line = try lines.next() else { throw .truncated(afterLine: lines.number) }
    if line.starts(with: TrailerLine.beginning) {
      guard let trailer = LineJSON.value(TrailerLine.self, in: line), trailer.count == count,
        trailer.sha256 == Hex.encode(digest.finish())
      else { throw .altered }
      guard try lines.next() == nil else { throw .malformed(line: lines.number, "stands behind the trailer") }
      return nil
    }
    digest.update(line)
    count += 1
    return (line, lines.number)
  }
}
