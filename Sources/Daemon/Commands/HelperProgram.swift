internal import Glibc

/// A program that gets bytes on its standard input and ends within a time.
///
/// It may close its input early, never read, or never end: the caller is neither killed by SIGPIPE nor kept waiting.
public enum HelperProgram {
  /// What became of it.
  public struct Outcome: Sendable, Hashable {
    /// How it ended, as waitpid(2) has it; `nil` if it was killed at the end of its time.
    public let status: Int32?
    /// What it wrote to standard output, if that was wanted.
    public let output: [UInt8]
    /// Whether it took the whole input.
    public let hasTakenInput: Bool

    /// Whether it took the input and exited with 0.
    public var hasSucceeded: Bool { status == 0 && hasTakenInput }
    /// The signal that ended it.
    public var signal: Int32? { status.flatMap { $0 & 0x7F == 0 ? nil : $0 & 0x7F } }
  }

  /// The most that is kept of its output, in bytes.
  public static let mostOutput = 4 << 20

  /// Runs `command`, which is looked for in PATH.
  ///
  /// - Parameters:
  ///   - keepsOutput: Whether its standard output is returned. Otherwise a process that it leaves behind may go on.
  ///   - seconds: How long it may take. Then it is killed.
  ///   - sharesErrors: Whether its standard error is that of this program.
  ///   - mostOutput: The most that is kept of its output, in bytes. A program that writes more is killed.
  /// - Returns: `nil` if it cannot be started.
  public static func run(
    _ command: [String], input: [UInt8], keepsOutput: Bool, within seconds: Int, sharesErrors: Bool = false,
    mostOutput: Int = mostOutput
  ) -> Outcome? {
    // A program that has ended must not end this one.
    signal(SIGPIPE, SIG_IGN)
    guard let toChild = Pipe(), let fromChild = Pipe() else { return nil }
    guard
      let id = StartedProgram.start(
        command, reading: toChild.reader, writing: keepsOutput ? fromChild.writer : nil, sharesErrors: sharesErrors)
    else {
      return nil
    }
    // Not before the start: the program's ends must block.
    toChild.unblock(toChild.writer)
    fromChild.unblock(fromChild.reader)
    toChild.closeReader()
    fromChild.closeWriter()
    if !keepsOutput { fromChild.closeReader() }
    if input.isEmpty { toChild.closeWriter() }
    let end = now() + Int64(seconds) * 1000
    var exchange = Exchange(input: input[...], keepsOutput: keepsOutput, mostOutput: mostOutput)
    while !exchange.isDone, now() < end { exchange.step(toChild, fromChild, until: end) }
    toChild.closeWriter()
    let status = wait(for: id, until: exchange.isDone && exchange.output.count <= mostOutput ? end : 0)
    return Outcome(status: status, output: exchange.output, hasTakenInput: exchange.input.isEmpty)
  }

  // MARK: The exchange

  private struct Exchange {
    var input: ArraySlice<UInt8>
    var output: [UInt8] = []
    var keepsOutput: Bool
    private let mostOutput: Int
    private var isBroken = false

    init(input: ArraySlice<UInt8>, keepsOutput: Bool, mostOutput: Int) {
      self.input = input
      self.keepsOutput = keepsOutput
      self.mostOutput = mostOutput
    }

    private var wantsToWrite: Bool { !input.isEmpty && !isBroken }
    var isDone: Bool { !wantsToWrite && !keepsOutput }

    /// Writes and reads what is possible, and waits for that.
    mutating func step(_ toChild: Pipe, _ fromChild: Pipe, until end: Int64) {
      var wanted = [
        pollfd(fd: wantsToWrite ? toChild.writer : -1, events: Int16(POLLOUT), revents: 0),
        pollfd(fd: keepsOutput ? fromChild.reader : -1, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&wanted, 2, Int32(clamping: max(0, end - now()))) > 0 else { return }
      if wanted[0].revents != 0 {
        let count = input.withUnsafeBytes { Glibc.write(toChild.writer, $0.baseAddress, $0.count) }
        if count > 0 { input = input.dropFirst(count) } else if !isPassing(errno) { isBroken = true }
        // The end of the input, which the program may wait for before it answers.
        if !wantsToWrite { toChild.closeWriter() }
      }
      guard wanted[1].revents != 0 else { return }
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = read(fromChild.reader, &buffer, buffer.count)
      if count > 0 { output += buffer[..<count] }
      if count == 0 || count < 0 && !isPassing(errno) || output.count > mostOutput { keepsOutput = false }
    }

    private func isPassing(_ code: Int32) -> Bool { code == EINTR || code == EAGAIN || code == EWOULDBLOCK }
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  // MARK: The process

  /// How the process ended; `nil` if it had to be killed.
  private static func wait(for id: pid_t, until end: Int64) -> Int32? {
    var status: Int32 = 0
    while true {
      let result = waitpid(id, &status, WNOHANG)
      if result == id { return status }
      if result < 0 && errno != EINTR { return nil }
      if now() >= end { break }
      usleep(2000)
    }
    kill(id, SIGKILL)
    while waitpid(id, &status, 0) == -1 && errno == EINTR {}
    return nil
  }

  /// A pipe that no other program inherits.
  private final class Pipe {
    private(set) var reader: Int32
    private(set) var writer: Int32

    init?() {
      var ends: [Int32] = [-1, -1]
      guard pipe(&ends) == 0 else { return nil }
      (reader, writer) = (ends[0], ends[1])
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    func closeReader() {
      if reader >= 0 { close(reader) }
      reader = -1
    }

    func closeWriter() {
      if writer >= 0 { close(writer) }
      writer = -1
    }

    /// Makes calls on one of the ends return at once.
    func unblock(_ end: Int32) { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }

    deinit {
      closeReader()
      closeWriter()
    }
  }
}
