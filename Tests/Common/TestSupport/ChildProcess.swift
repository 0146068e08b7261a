import Foundation
public import Glibc
import Locking

/// A process that a test starts.
///
/// Foundation's `Process` is not used: it waits for the exit with `select`, which does not support descriptors above
/// 1023. Tests with thousands of sockets run in the same process, and `Process` would then wait forever.
public final class ChildProcess: Sendable {
  public enum Exit: Sendable, Hashable {
    case code(Int32)
    case signal(Int32)
  }

  public let id: pid_t
  public let output = LineLog()
  public let errors = LineLog()
  /// The write end of the process's standard input; -1 when closed.
  private let input: LockedValue<Int32>
  private let outcome = Watched<Exit?>(nil)

  /// Starts the program at `path`, apart from the machine: see `OwnPlaces`.
  ///
  /// - Parameters:
  ///   - environment: Variables that are added to those of `OwnPlaces`; `nil` removes a variable.
  ///   - folder: The working directory; `nil` for that of the test.
  public init(
    _ path: String, _ arguments: [String] = [], environment: [String: String?] = [:], in folder: String? = nil
  ) throws {
    // `env -C` replaces itself with the program, which keeps the process ID.
    let command = folder.map { ["/usr/bin/env", "-C", $0, path] } ?? [path]
    let (id, input, output, errors) = try Self.start(command + arguments, environment)
    self.id = id
    self.input = LockedValue(input)
    Self.read(output, into: self.output)
    Self.read(errors, into: self.errors)
    Thread.detachNewThread { [id, outcome] in
      let exit = Exit(of: id)
      outcome.update { $0 = exit }
    }
  }

  deinit { kill() }

  /// Waits for the exit of the process and returns how it exited.
  public func exit(within limit: Duration = .seconds(30)) async throws -> Exit {
    try await outcome.wait(for: "the end of process \(id)", within: limit) { $0 }
  }

  public var hasEnded: Bool { outcome.value != nil }

  /// Sends `signal` unless the process has exited: another process may then have its ID.
  public func send(_ signal: Int32) {
    if !hasEnded { _ = Glibc.kill(id, signal) }
  }

  public func kill() {
    send(SIGKILL)
    closeInput()
  }

  /// Writes to the standard input. Bytes that the process does not read before its exit are lost.
  public func write(_ bytes: [UInt8]) {
    input.withLock { descriptor in
      var rest = bytes[...]
      while descriptor >= 0, !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno != EINTR { return }
        rest = rest.dropFirst(max(count, 0))
      }
    }
  }

  public func write(_ text: String) { write(Array(text.utf8)) }

  public func closeInput() {
    input.withLock { descriptor in
      if descriptor >= 0 { _ = close(descriptor) }
      descriptor = -1
    }
  }
}

extension ChildProcess {
  /// Starts `path`, writes `input` to its standard input and waits for its exit.
  public static func run(
    _ path: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String: String?] = [:],
    in folder: String? = nil, within limit: Duration = .seconds(60)
  ) async throws -> (exit: Exit, output: [String], errors: [String]) {
    let process = try ChildProcess(path, arguments, environment: environment, in: folder)
    defer { process.kill() }
    process.write(input)
    process.closeInput()
    let exit = try await process.exit(within: limit)
    return (exit, try await process.output.all(), try await process.errors.all())
  }

  /// Runs `path` until it exits, with files as its streams. Blocks the calling thread, so the program must exit by
  /// itself.
  ///
  /// `output` and `errors` are created or truncated first, and may be the same file.
  public static func run(
    _ path: String, _ arguments: [String], reading input: String = "/dev/null", writing output: String, _ errors: String
  ) throws -> Exit {
    let id = try started.withLock { count in
      let files = try [
        OpenFile(input, O_RDONLY), OpenFile(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND),
        OpenFile(errors, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND),
      ]
      // A file is closed with its object, which an optimized build releases after its last use.
      let id = try withExtendedLifetime(files) {
        try spawn([path] + arguments, [:], descriptors: files.map(\.descriptor))
      }
      count += 1
      return id
    }
    return Exit(of: id)
  }

  private static func read(_ descriptor: Int32, into log: LineLog) {
    Thread.detachNewThread {
      var buffer = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count > 0 { log.append(buffer[..<count]) } else if count == 0 || errno != EINTR { break }
      }
      close(descriptor)
      log.end()
    }
  }

  /// Starts `command` and returns this process's ends of its pipes.
  private static func start(
    _ command: [String], _ environment: [String: String?]
  ) throws -> (id: pid_t, input: Int32, output: Int32, errors: Int32) {
    try started.withLock { count in
      // A write to a child that has exited must not kill the test process.
      signal(SIGPIPE, SIG_IGN)
      let input = try Pipe()
      let output = try Pipe()
      let errors = try Pipe()
      let id = try withExtendedLifetime((input, output, errors)) {
        try spawn(command, environment, descriptors: [input.reader, output.writer, errors.writer])
      }
      count += 1
      return (id, input.takeWriter(), output.takeReader(), errors.takeReader())
    }
  }

  /// The number of processes started. The lock allows only one start at a time: otherwise a child could inherit another
  /// child's pipes and keep them open. The value is a count because a value without a size shares the address of the
  /// next field, which the thread sanitizer reports as a race.
  private static let started = LockedValue(0)

  private static func spawn(
    _ command: [String], _ environment: [String: String?], descriptors: [Int32]
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (target, source) in descriptors.enumerated() {
      posix_spawn_file_actions_adddup2(&actions, source, Int32(target))
    }
    // A child inherits its parent's signal mask, and a test may run on a thread with blocked signals. Background jobs
    // of a shell ignore interrupts.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for number in [SIGPIPE, SIGINT] { sigaddset(&signals, number) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var merged = OwnPlaces.environment
    for (name, value) in environment { merged[name] = value }
    var id: pid_t = 0
    let code = withCStrings(command) { arguments in
      withCStrings(merged.map { "\($0.key)=\($0.value)" }) {
        posix_spawn(&id, command[0], &actions, &attributes, arguments, $0)
      }
    }
    guard code == 0 else { throw SpawnFailed(path: command[0], reason: String(cString: strerror(code))) }
    return id
  }

  /// Calls `body` with the null-terminated array of C strings that `execve` expects.
  private static func withCStrings<R>(
    _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R
  ) -> R {
    var strings: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) } + [nil]
    defer { strings.forEach { free($0) } }
    return strings.withUnsafeMutableBufferPointer { buffer in
      // The array contains at least its terminator, so it has an address.
      body(buffer.baseAddress!)
    }
  }
}

extension ChildProcess.Exit {
  /// Waits for the exit of the child `id`. No other thread may wait for the same child.
  fileprivate init(of id: pid_t) {
    var status: Int32 = 0
    while waitpid(id, &status, 0) == -1 && errno == EINTR {}
    let signal = status & 0x7F
    self = signal == 0 ? .code(status >> 8 & 0xFF) : .signal(signal)
  }

  /// The exit code; `nil` if a signal killed the process.
  public var code: Int32? {
    if case .code(let code) = self { code } else { nil }
  }
}

public struct SpawnFailed: Error, CustomStringConvertible {
  let path: String
  let reason: String

  public var description: String { "\(path) did not start: \(reason)" }
}

/// A file that is closed with this object and is never inherited by a child.
private final class OpenFile {
  let descriptor: Int32

  init(_ path: String, _ flags: Int32) throws {
    descriptor = open(path, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw SpawnFailed(path: path, reason: String(cString: strerror(errno))) }
  }

  deinit { close(descriptor) }
}

/// A pipe whose ends are closed with this object unless they are taken, and are never inherited by a child.
private final class Pipe {
  private(set) var reader: Int32
  private(set) var writer: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw SpawnFailed(path: "pipe", reason: String(cString: strerror(errno))) }
    (reader, writer) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  }

  func takeReader() -> Int32 {
    defer { reader = -1 }
    return reader
  }

  func takeWriter() -> Int32 {
    defer { writer = -1 }
    return writer
  }

  deinit {
    for end in [reader, writer] where end >= 0 { close(end) }
  }
}
