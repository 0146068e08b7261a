internal import Glibc
internal import ProcessSignals

/// A program that gets bytes on its standard input and ends within a time.
///
/// It may close its input early, never read, or never end: the caller is neither killed by SIGPIPE nor kept waiting.
///
/// The program has a process group of its own. At the end of its time the group is killed with every child in it, and
/// also when this program ends before. While this program is in the foreground of a terminal, it shares its group, and
/// only the started process is killed: the system would stop one of a background group that asks for a password at the
/// terminal, and Ctrl-C reaches all processes of the foreground group.
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
  ///   - keepsOutput: Whether its standard output is returned, as far as it is written when the program ends. A process
  ///     that it leaves behind may go on, and is not waited for.
  ///   - seconds: How long it may take. Then it is killed.
  ///   - mostOutput: The most that is kept of its output, in bytes. A program that writes more is killed.
  ///   - leadsGroup: Whether it has a process group of its own; `nil` unless this program is in the foreground of a
  ///     terminal.
  ///   - errors: Is called with what it writes to standard error, as it writes it and until it ends, at most 64 KiB:
  ///     text that is safe to show. `nil` discards it.
  /// - Returns: `nil` if it cannot be started.
  public static func run(
    _ command: [String], input: [UInt8], keepsOutput: Bool, within seconds: Int, mostOutput: Int = mostOutput,
    leadsGroup: Bool? = nil, errors: ((String) -> Void)? = nil
  ) -> Outcome? {
    // A program that has ended must not end this one.
    signal(SIGPIPE, SIG_IGN)
    guard let toChild = Pipe(), let fromChild = Pipe(), let itsErrors = Pipe() else { return nil }
    let leadsGroup = leadsGroup ?? !isInForeground
    func start() -> pid_t? {
      StartedProgram.start(
        command, reading: toChild.reader, writing: keepsOutput ? fromChild.writer : nil,
        errors: errors == nil ? nil : itsErrors.writer, leadsGroup: leadsGroup)
    }
    guard let id = leadsGroup ? OwnedProcessGroups.start(start) : start() else { return nil }
    // Not before the start: the program's ends must block.
    toChild.unblock(toChild.writer)
    for pipe in [fromChild, itsErrors] { pipe.unblock(pipe.reader) }
    toChild.closeReader()
    for pipe in [fromChild, itsErrors] { pipe.closeWriter() }
    if !keepsOutput { fromChild.closeReader() }
    if input.isEmpty { toChild.closeWriter() }
    let end = now() + Int64(seconds) * 1000
    var exchange = Exchange(input: input[...], keepsOutput: keepsOutput, mostOutput: mostOutput, errors: errors)
    while !exchange.isDone, now() < end {
      // Before the pipe is read: what the program has written is in it by then.
      let hasEnded = hasEnded(id)
      exchange.step(toChild, fromChild, itsErrors, until: hasEnded ? 0 : min(end, now() + Self.pause))
      if hasEnded { exchange.finish(fromChild, itsErrors) }
    }
    toChild.closeWriter()
    let status = wait(for: id, until: exchange.isDone && exchange.output.count <= mostOutput ? end : 0, leadsGroup)
    return Outcome(status: status, output: exchange.output, hasTakenInput: exchange.input.isEmpty)
  }

  /// The time between two looks at whether the program has ended, in milliseconds. The end of its output comes sooner,
  /// unless a process that it leaves behind has the pipe.
  private static let pause: Int64 = 20

  /// Whether this program may read from the terminal.
  private static var isInForeground: Bool {
    let terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
    guard terminal >= 0 else { return false }
    defer { close(terminal) }
    return tcgetpgrp(terminal) == getpgrp()
  }

  // MARK: The exchange

  private struct Exchange {
    var input: ArraySlice<UInt8>
    var output: [UInt8] = []
    var keepsOutput: Bool
    private let mostOutput: Int
    /// Shows what the program writes to standard error; `nil` if that has ended, or is not wanted.
    private var errors: ((String) -> Void)?
    private var relay = ErrorRelay()
    private var isBroken = false

    init(input: ArraySlice<UInt8>, keepsOutput: Bool, mostOutput: Int, errors: ((String) -> Void)?) {
      self.input = input
      self.keepsOutput = keepsOutput
      self.mostOutput = mostOutput
      self.errors = errors
    }

    private var wantsToWrite: Bool { !input.isEmpty && !isBroken }
    var isDone: Bool { output.count > mostOutput || !wantsToWrite && !keepsOutput && errors == nil }

    /// Writes and reads what is possible, and waits for that.
    mutating func step(_ toChild: Pipe, _ fromChild: Pipe, _ itsErrors: Pipe, until end: Int64) {
      var wanted = [
        pollfd(fd: wantsToWrite ? toChild.writer : -1, events: Int16(POLLOUT), revents: 0),
        pollfd(fd: keepsOutput ? fromChild.reader : -1, events: Int16(POLLIN), revents: 0),
        pollfd(fd: errors == nil ? -1 : itsErrors.reader, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&wanted, 3, Int32(clamping: max(0, end - now()))) > 0 else { return }
      if wanted[0].revents != 0 {
        let count = input.withUnsafeBytes { Glibc.write(toChild.writer, $0.baseAddress, $0.count) }
        if count > 0 { input = input.dropFirst(count) } else if !isPassing(errno) { isBroken = true }
        // The end of the input, which the program may wait for before it answers.
        if !wantsToWrite { toChild.closeWriter() }
      }
      if wanted[1].revents != 0 { _ = readOnce(fromChild) }
      if wanted[2].revents != 0 { _ = passErrorsOnce(itsErrors) }
    }

    /// Reads what the program has left in the pipe, and ends the exchange. A process that has inherited the pipe is not
    /// waited for.
    mutating func finish(_ fromChild: Pipe, _ itsErrors: Pipe) {
      while keepsOutput, readOnce(fromChild) {}
      keepsOutput = false
      while errors != nil, !relay.isFull, passErrorsOnce(itsErrors) {}
      endErrors()
      if wantsToWrite { isBroken = true }
    }

    /// - Returns: Whether there was something.
    private mutating func readOnce(_ fromChild: Pipe) -> Bool {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      let count = read(fromChild.reader, &buffer, buffer.count)
      let isInterrupted = count < 0 && errno == EINTR
      if count > 0 { output += buffer[..<count] }
      if count == 0 || count < 0 && !isPassing(errno) || output.count > mostOutput { keepsOutput = false }
      return count > 0 || isInterrupted
    }

    /// - Returns: Whether there was something.
    private mutating func passErrorsOnce(_ itsErrors: Pipe) -> Bool {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = read(itsErrors.reader, &buffer, buffer.count)
      let isInterrupted = count < 0 && errno == EINTR
      if count > 0 { show(relay.text(of: buffer[..<count])) }
      if count == 0 || count < 0 && !isPassing(errno) { endErrors() }
      return count > 0 || isInterrupted
    }

    private mutating func endErrors() {
      show(relay.end())
      errors = nil
    }

    private func show(_ text: String) { if !text.isEmpty { errors?(text) } }

    private func isPassing(_ code: Int32) -> Bool { code == EINTR || code == EAGAIN || code == EWOULDBLOCK }
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  // MARK: The process

  /// Whether the process has ended. It is left for waitpid(2).
  private static func hasEnded(_ id: pid_t) -> Bool {
    var information = siginfo_t()
    // Where this process ignores SIGCHLD, there is nothing to wait for.
    guard waitid(P_PID, id_t(id), &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return errno == ECHILD }
    return information._sifields._sigchld.si_pid == id
  }

  /// How the process ended; `nil` if it had to be killed.
  private static func wait(for id: pid_t, until end: Int64, _ leadsGroup: Bool) -> Int32? {
    var isKilled = false
    while !hasEnded(id) {
      if now() >= end {
        isKilled = true
        kill(leadsGroup ? -id : id, SIGKILL)
        break
      }
      usleep(2000)
    }
    // While the process is not waited for, no other group gets its number.
    if leadsGroup { OwnedProcessGroups.forget(id) }
    var status: Int32 = 0
    while true {
      let result = waitpid(id, &status, 0)
      if result == id { return isKilled ? nil : status }
      guard result < 0, errno == EINTR else { return nil }
    }
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
