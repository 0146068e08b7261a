internal import Glibc

/// Reads the lines of a file one at a time.
public final class LineReader {
  /// The maximum length of a line in bytes. A receipt has a few thousand.
  static let longest = 1 << 20

  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var start = 0
  private var hasEnded = false
  /// The number of the last returned line, counted from 1.
  private(set) var number = 0

  /// - Parameter descriptor: The file to read. It stays open and belongs to the caller.
  public init(descriptor: Int32) { self.descriptor = descriptor }

  /// Returns the next line including its line end; `nil` after the last line.
  func next() throws(ImportError) -> [UInt8]? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { start = end + 1 }
        number += 1
        return Array(buffer[start...end])
      }
      guard buffer.count - start <= Self.longest else {
        throw .malformed(line: number + 1, "is longer than \(Self.longest) bytes")
      }
      if hasEnded {
        // Every line of an export has a line end; a line without one is incomplete.
        if start < buffer.count { throw .truncated(afterLine: number) }
        return nil
      }
      buffer.removeFirst(start)
      start = 0
      searched = buffer.count
      try fill()
    }
  }

  private func fill() throws(ImportError) {
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
      buffer += chunk[..<count]
      hasEnded = count == 0
      return
    }
  }
}
