internal import Dispatch
internal import Glibc

/// Standard output without a buffer: the next program can read each write at once.
public enum StandardOutput {
  /// Returns `false` if the reader has gone. If writing fails for another reason, the process reports it and exits: a
  /// lost result is not a success.
  @discardableResult
  public static func write(_ bytes: [UInt8]) -> Bool {
    guard !writeAll(bytes, to: STDOUT_FILENO) else { return true }
    let code = errno
    guard code != EPIPE else { return false }
    StandardError.write(
      "error: standard output: \(String(cString: strerror(code)))\nhint: name a place that has room\n")
    exit(Status.cannotWrite.rawValue)
  }

  /// Writes `text` as UTF-8, as `write(_:)` does.
  @discardableResult
  public static func write(_ text: String) -> Bool { write(Array(text.utf8)) }

  /// Whether a person reads it.
  public static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }
}

/// Standard error, for everything except results.
public enum StandardError {
  /// Whether a person reads it.
  public static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// Writes `text` as UTF-8. An error is ignored: there is no place to report it.
  public static func write(_ text: String) { _ = writeAll(Array(text.utf8), to: STDERR_FILENO) }
}

private func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
    if count < 0 && isPassing(errno, on: file, awaiting: POLLOUT) { continue }
    guard count > 0 else { return false }
    rest = rest.dropFirst(count)
  }
  return true
}

/// Whether a call on `file` that failed with `code` should be repeated. Where the file does not block, which it may
/// share with the parent process, waits until it is ready.
private func isPassing(_ code: Int32, on file: Int32, awaiting event: Int32) -> Bool {
  if code == EINTR { return true }
  guard code == EAGAIN || code == EWOULDBLOCK else { return false }
  var wanted = pollfd(fd: file, events: Int16(event), revents: 0)
  return poll(&wanted, 1, -1) >= 0 || errno == EINTR
}

/// Standard input, read only on demand, so that a fast writer has to wait.
public final class StandardInput: Sendable {
  private let queue = DispatchQueue(label: "standard input")

  /// Creates a reader. A process uses one only.
  public init() {}

  /// Whether a person types it.
  public static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

  /// The next bytes, at most 64 KiB; `nil` at the end. Throws `.noInput` when it cannot be read: that is not the end.
  public func read() async throws(Failure) -> [UInt8]? {
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<[UInt8]?, Failure>, Never>) in
      // On its own queue, because a read that waits for a person would block a thread that tasks share.
      queue.async { continuation.resume(returning: Self.readNow()) }
    }
    return try result.get()
  }

  private static func readNow() -> Result<[UInt8]?, Failure> {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
      guard count < 0 else { return .success(count > 0 ? Array(buffer[..<count]) : nil) }
      let code = errno
      if isPassing(code, on: STDIN_FILENO, awaiting: POLLIN) { continue }
      return .failure(Failure(.noInput, "standard input: \(String(cString: strerror(code)))"))
    }
  }
}

/// The lines of standard input, one at a time.
public actor InputLines {
  private let input = StandardInput()
  private var splitter = LineSplitter()
  private var lines: ArraySlice<[UInt8]> = []

  /// Creates a reader. A process uses one only.
  public init() {}

  /// Returns the next line without its end; `nil` after the last one, which may have no end.
  public func next() async throws(Failure) -> [UInt8]? {
    while lines.isEmpty {
      guard let bytes = try await input.read() else { return splitter.finish() }
      lines = splitter.lines(in: bytes)[...]
    }
    return lines.removeFirst()
  }
}

/// Splits bytes into lines, which end with LF or CR LF or with the input.
public struct LineSplitter {
  private var rest: [UInt8] = []

  /// Creates a splitter at the beginning of a text.
  public init() {}

  /// Returns the complete lines in earlier bytes and `bytes`, without their ends.
  public mutating func lines(in bytes: [UInt8]) -> [[UInt8]] {
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

  /// Returns the incomplete line at the end of the input, if there is one.
  public mutating func finish() -> [UInt8]? {
    defer { rest = [] }
    return rest.isEmpty ? nil : rest
  }
}
