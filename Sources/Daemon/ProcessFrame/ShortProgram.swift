internal import CServiceProcess
internal import Dispatch
internal import Glibc

/// A program that does one thing for a daemon and exits: without a shell, with an environment of its own, within a time.
///
/// It inherits no descriptor and no blocked or ignored signal. It leads a process group, so that the programs that it
/// has started end with it at the limit.
public struct ShortProgram: Sendable, Hashable {
  /// An absolute path.
  public var path: String
  /// Without the name of the program.
  public var arguments: [String]
  /// What the program reads from standard input: at most 4,096 bytes, which fit into a pipe.
  public var input: [UInt8]
  /// The time until it is killed.
  public var limit: Duration

  /// How a program ended.
  public enum Ending: Sendable, Hashable {
    case exited(status: Int32)
    case killed(signal: Int32)
    case timedOut
    /// It has exited, and its status is lost: this process ignores SIGCHLD, or another part of it has waited for the
    /// program.
    case lost
    case notStarted(reason: String)
  }

  /// How a program ended, and what it said.
  public struct Outcome: Sendable, Hashable {
    public let ending: Ending
    /// The last kilobyte of what it wrote to standard output and standard error.
    public let output: String
  }

  public init(path: String, arguments: [String], input: [UInt8] = [], limit: Duration) {
    (self.path, self.arguments, self.input, self.limit) = (path, arguments, input, limit)
  }

  /// Whether this user may run the file at `path`.
  public static func isExecutable(_ path: String) -> Bool { access(path, X_OK) == 0 }

  private static let environment = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
  ]
  private static let mostInput = 4096
  private static let mostOutput = 1024

  /// Runs the program and waits for its end.
  public func run() async -> Outcome {
    await withCheckedContinuation { continuation in
      // This thread may block: the wait is bounded, and such programs are rare.
      DispatchQueue(label: "sallyport.program").async { continuation.resume(returning: runNow()) }
    }
  }

  private func runNow() -> Outcome {
    guard input.count <= Self.mostInput else {
      return Outcome(ending: .notStarted(reason: "its input is too long"), output: "")
    }
    var (toProgram, fromProgram): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
    defer { for end in toProgram + fromProgram where end >= 0 { close(end) } }
    guard upgrade_child_pipe(&toProgram) == 0, upgrade_child_pipe(&fromProgram) == 0,
      write(toProgram[1], input, input.count) == input.count
    else { return Outcome(ending: .notStarted(reason: String(cString: strerror(errno))), output: "") }
    let (id, fault) = spawn(reading: toProgram[0], writing: fromProgram[1])
    for end in [toProgram[0], toProgram[1], fromProgram[1]] { close(end) }
    (toProgram, fromProgram[1]) = ([], -1)
    guard fault == 0 else {
      return Outcome(ending: .notStarted(reason: String(cString: strerror(fault))), output: "")
    }
    _ = fcntl(fromProgram[0], F_SETFL, O_NONBLOCK)
    return follow(id, output: fromProgram[0])
  }

  /// - Returns: The process id, and the number of an error or 0.
  private func spawn(reading input: Int32, writing output: Int32) -> (pid_t, Int32) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (descriptor, target) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (output, STDERR_FILENO)] {
      posix_spawn_file_actions_adddup2(&actions, descriptor, target)
    }
    guard upgrade_child_close_from(&actions, STDERR_FILENO + 1) == 0 else { return (0, ENOMEM) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
    var variables: [UnsafeMutablePointer<CChar>?] = Self.environment.map { strdup($0) } + [nil]
    defer { for text in words + variables { free(text) } }
    var id: pid_t = 0
    let fault = posix_spawn(&id, path, &actions, &attributes, &words, &variables)
    return (id, fault)
  }

  /// Reads what the program writes until it has exited, and kills it at the limit.
  private func follow(_ id: pid_t, output: Int32) -> Outcome {
    let end = ContinuousClock.now + limit
    var kept: [UInt8] = []
    var isOpen = true
    while true {
      var status: Int32 = 0
      let ended = waitpid(id, &status, WNOHANG)
      // Reading the output sets errno too.
      let isLost = ended < 0 && errno == ECHILD
      if isOpen { isOpen = Self.drain(output, into: &kept) }
      if ended == id { return Outcome(ending: Self.ending(status), output: Self.text(kept)) }
      // Its id may be that of another program or group by now, which must not be killed.
      if isLost { return Outcome(ending: .lost, output: Self.text(kept)) }
      guard .now < end else {
        // Not reaped yet, so the id is still its own.
        kill(-id, SIGKILL)
        while waitpid(id, &status, 0) < 0, errno == EINTR {}
        return Outcome(ending: .timedOut, output: Self.text(kept))
      }
      // Another program may keep the pipe open, so its end says nothing about this one.
      var wanted = pollfd(fd: isOpen ? output : -1, events: Int16(POLLIN), revents: 0)
      _ = poll(&wanted, 1, 20)
    }
  }

  /// Reads what is there, and returns whether more may follow.
  ///
  /// A pipe has room for 64 KiB. A program that always writes more must not keep its limit from being looked at.
  private static func drain(_ output: Int32, into kept: inout [UInt8]) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<32 {
      let count = read(output, &chunk, chunk.count)
      guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
      kept = Array((kept + chunk[..<count]).suffix(mostOutput))
    }
    return true
  }

  private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  /// wait(2): the low seven bits are a signal, the next eight a status.
  private static func ending(_ status: Int32) -> Ending {
    status & 0x7F == 0 ? .exited(status: status >> 8 & 0xFF) : .killed(signal: status & 0x7F)
  }
}
