internal import Dispatch
internal import Glibc

/// Standard output, unbuffered: what is written is there for the next program at once.
enum StandardOutput {
  /// `false` if nobody reads any more. Where it cannot be written for another reason, the process ends and says so: a
  /// result that is lost is no success.
  @discardableResult
  static func write(_ bytes: [UInt8]) -> Bool {
    guard !writeAll(bytes, to: STDOUT_FILENO) else { return true }
    let code = errno
    guard code != EPIPE else { return false }
    StandardError.write(
      "error: standard output: \(String(cString: strerror(code)))\nhint: name a place that has room\n")
    // EX_IOERR of sysexits(3).
    exit(74)
  }

  @discardableResult
  static func write(_ text: String) -> Bool { write(Array(text.utf8)) }
}

/// Standard error: for what is not the result.
enum StandardError {
  static func write(_ text: String) { _ = writeAll(Array(text.utf8), to: STDERR_FILENO) }
}

private func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
    if count < 0 && errno == EINTR { continue }
    guard count > 0 else { return false }
    rest = rest.dropFirst(count)
  }
  return true
}

/// Standard input, read when asked for and not before, so that a fast writer waits.
final class StandardInput: Sendable {
  private let queue = DispatchQueue(label: "standard input")

  static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

  /// The next bytes, at most 64 KiB; `nil` at the end, or when it cannot be read.
  func read() async -> [UInt8]? {
    await withCheckedContinuation { continuation in
      // On a queue of its own: a read that waits for a person would hold up a thread that tasks share.
      queue.async { continuation.resume(returning: Self.readNow()) }
    }
  }

  private static func readNow() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      return count > 0 ? Array(buffer[..<count]) : nil
    }
  }
}

/// Splits bytes into lines, which end with LF or CR LF or with the input.
struct LineSplitter {
  private var rest: [UInt8] = []

  /// The whole lines in `bytes` and what came before them, without their ends.
  mutating func lines(in bytes: [UInt8]) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    var start = bytes.startIndex
    while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
      var line = rest + bytes[start..<end]
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      lines.append(line)
      rest = []
      start = end + 1
    }
    rest += bytes[start...]
    return lines
  }

  /// What is left at the end of the input, if there is anything.
  mutating func finish() -> [UInt8]? {
    defer { rest = [] }
    return rest.isEmpty ? nil : rest
  }
}
