internal import CUpgradeChild
internal import Dispatch
internal import Glibc
internal import Locking

/// The new process of a graceful upgrade, which takes over from this one.
///
/// It inherits listening sockets as systemd passes them (sd_listen_fds(3)): `LISTEN_FDS`, `LISTEN_FDNAMES`,
/// `LISTEN_PID`. One more descriptor, named `UpgradeParent.descriptorName`, is the channel on which it reports
/// readiness or a failure.
public final class UpgradeChild: Sendable {
  /// The reason why the new process could not be started.
  public struct StartError: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
  }

  /// The outcome of the upgrade.
  public enum Verdict: Sendable, Hashable {
    /// The new process serves.
    case ready
    /// The new process has exited. The text, one or several lines, is for people.
    case failed(String)
  }

  /// The process id.
  public let id: Int32
  /// The descriptor on which the report arrives. Closed when this object is released.
  private let channel: Int32
  private let isGone = LockedValue(false)

  private init(id: Int32, channel: Int32) {
    self.id = id
    self.channel = channel
  }

  deinit { close(channel) }

  /// Starts `program` and returns once it runs.
  ///
  /// - Parameters:
  ///   - sockets: The inherited sockets with their names, which contain no colon. This process keeps its own
  ///     descriptors.
  ///   - environment: The environment of this process. Variables meant only for this process are removed: those of
  ///     socket activation, and `WATCHDOG_PID`.
  public static func start(
    _ program: ExecutableLocator, passing sockets: [(name: String, descriptor: Int32)], environment: [String: String]
  ) throws(StartError) -> UpgradeChild {
    var ends: [Int32] = [-1, -1]
    guard upgrade_child_pipe(&ends) == 0 else { throw fault("cannot create a pipe") }
    defer { close(ends[1]) }
    let passed = sockets + [(name: UpgradeParent.descriptorName, descriptor: ends[1])]
    var environment = environment.filter { !ownVariables.contains($0.key) }
    environment["LISTEN_FDS"] = String(passed.count)
    environment["LISTEN_FDNAMES"] = passed.map(\.name).joined(separator: ":")
    let id = spawn(program, environment.map { "\($0.key)=\($0.value)" }, passed.map(\.descriptor))
    guard id > 0 else {
      let fault = fault("\(program.path) cannot be started")
      close(ends[0])
      throw fault
    }
    return UpgradeChild(id: id, channel: ends[0])
  }

  /// The variables that systemd sets for one process only.
  private static let ownVariables: Set = [
    "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_PIDFDID", "WATCHDOG_PID",
  ]

  private static func fault(_ what: String) -> StartError {
    StartError(description: "\(what): \(String(cString: strerror(errno)))")
  }

  private static func spawn(_ program: ExecutableLocator, _ environment: [String], _ descriptors: [Int32]) -> pid_t {
    let name = "LISTEN_PID="
    // Enough for any process id and a terminating zero.
    let room = 24
    let place = name + String(repeating: " ", count: room)
    return withCStrings(program.arguments) { arguments in
      withCStrings([place] + environment) { environment in
        // The first string is `place`, so it exists and has `room` bytes after its name.
        let ownID = environment[0].map { $0 + name.utf8.count }
        return upgrade_child_start(
          program.path, arguments, environment, descriptors, Int32(descriptors.count), ownID, room)
      }
    }
  }

  /// Lends the texts to `body` as a null-terminated array of C strings, as `execve` expects.
  private static func withCStrings<R>(
    _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> R
  ) -> R {
    let strings = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: texts.count + 1)
    for (index, text) in texts.enumerated() { (strings + index).initialize(to: strdup(text)) }
    (strings + texts.count).initialize(to: nil)
    defer {
      for index in texts.indices { free(strings[index]) }
      strings.deallocate()
    }
    return body(strings)
  }

  // MARK: Its word

  /// Waits at most `limit` for the report. If the new process has not reported readiness by then, it is killed. Call
  /// it only once.
  public func verdict(within limit: Duration) async -> Verdict {
    await withCheckedContinuation { continuation in
      // This thread may block: the wait is bounded, and upgrades are rare.
      DispatchQueue(label: "sallyport.upgrade").async {
        let text = self.word(until: .now + limit)
        if text == UpgradeParent.readyLine {
          continuation.resume(returning: .ready)
          return
        }
        let ending = self.end()
        continuation.resume(returning: .failed(text.isEmpty ? ending : text))
      }
    }
  }

  /// Reads the report until the new process closes the channel or the deadline passes.
  private func word(until deadline: ContinuousClock.Instant) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while bytes.count < 64 << 10 {
      let left = ContinuousClock.now.duration(to: deadline).components
      guard left.seconds >= 0, left.attoseconds >= 0 else { break }
      var wanted = pollfd(fd: channel, events: Int16(POLLIN), revents: 0)
      let milliseconds = left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000
      let count = poll(&wanted, 1, Int32(clamping: milliseconds + 1))
      guard count > 0 else { continue }
      let length = read(channel, &buffer, buffer.count)
      if length <= 0 { break }
      bytes += buffer.prefix(length)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Kills the new process unless it has exited, and returns the reason. Blocks until it has exited. Later calls do
  /// nothing.
  @discardableResult
  public func end() -> String {
    isGone.withLock { isGone in
      guard !isGone else { return "the new process was stopped" }
      isGone = true
      var status: Int32 = 0
      // A process that has closed the channel is about to exit, and its own status says more than a signal's.
      for _ in 0..<100 {
        let ended = waitpid(id, &status, WNOHANG)
        if ended == id { return Self.description(of: status) }
        if ended < 0 && errno != EINTR { return "the new process does not exist" }
        guard hasToldEverything else { break }
        usleep(10_000)
      }
      kill(id, SIGKILL)
      while waitpid(id, &status, 0) < 0 && errno == EINTR {}
      return "the new process did not report readiness in time"
    }
  }

  /// Whether the new process has closed its end of the channel.
  private var hasToldEverything: Bool {
    var wanted = pollfd(fd: channel, events: 0, revents: 0)
    return poll(&wanted, 1, 0) > 0 && wanted.revents & Int16(POLLHUP) != 0
  }

  private static func description(of status: Int32) -> String {
    let signal = status & 0x7F
    return signal == 0
      ? "the new process exited with status \(status >> 8 & 0xFF)"
      : "the new process was killed by signal \(signal)"
  }
}
