internal import CUpgradeChild
internal import Dispatch
internal import Glibc
internal import Locking

/// A process that was started to take this one's place.
///
/// It gets listening sockets as systemd would pass them (sd_listen_fds(3)): `LISTEN_FDS`, `LISTEN_FDNAMES`,
/// `LISTEN_PID`. One descriptor more, of the name `UpgradeParent.descriptorName`, is the way on which it tells that
/// it serves, or why not.
public final class UpgradeChild: Sendable {
  public struct StartFault: Error, Sendable, Hashable, CustomStringConvertible {
    public let description: String
  }

  /// What came of it.
  public enum Verdict: Sendable, Hashable {
    /// It serves.
    case ready
    /// It is gone; the text, of one line or several, is for people.
    case failed(String)
  }

  public let id: Int32
  /// Where its word arrives. Closed with this value.
  private let channel: Int32
  private let isGone = LockedValue(false)

  private init(id: Int32, channel: Int32) {
    self.id = id
    self.channel = channel
  }

  deinit { close(channel) }

  /// Starts `program`, and returns when it runs.
  ///
  /// - Parameters:
  ///   - sockets: with the names that it knows them by; without colons. This process keeps its own descriptors.
  ///   - environment: of this process. Variables that are meant for this process alone are left out: those of sockets,
  ///     and `WATCHDOG_PID`.
  public static func start(
    _ program: ExecutableLocator, passing sockets: [(name: String, descriptor: Int32)], environment: [String: String]
  ) throws(StartFault) -> UpgradeChild {
    var ends: [Int32] = [-1, -1]
    guard upgrade_child_pipe(&ends) == 0 else { throw fault("no pipe") }
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

  /// Variables with which systemd speaks to one process only.
  private static let ownVariables: Set = [
    "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_PIDFDID", "WATCHDOG_PID",
  ]

  private static func fault(_ what: String) -> StartFault {
    StartFault(description: "\(what): \(String(cString: strerror(errno)))")
  }

  private static func spawn(_ program: ExecutableLocator, _ environment: [String], _ descriptors: [Int32]) -> pid_t {
    let name = "LISTEN_PID="
    // Room for any process id and a zero.
    let room = 24
    let place = name + String(repeating: " ", count: room)
    return withCStrings(program.arguments) { arguments in
      withCStrings([place] + environment) { environment in
        // The first string is `place`, so it is there, and has `room` bytes behind its name.
        let ownID = environment[0].map { $0 + name.utf8.count }
        return upgrade_child_start(
          program.path, arguments, environment, descriptors, Int32(descriptors.count), ownID, room)
      }
    }
  }

  /// Calls `body` with the null-terminated array of C strings that `execve` takes.
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

  /// Waits for its word, for `limit` at most. Who does not say by then that it serves is ended. Call it once.
  public func verdict(within limit: Duration) async -> Verdict {
    await withCheckedContinuation { continuation in
      // A thread that may block: the word comes within the limit, and upgrades are rare.
      DispatchQueue(label: "sallyport.successor").async {
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

  /// What it has told until it told everything, or nothing more in time.
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

  /// Ends it, unless it has ended, and tells how it did. Blocks until it is gone; after the first call it does nothing.
  @discardableResult
  public func end() -> String {
    isGone.withLock { isGone in
      guard !isGone else { return "it was ended" }
      isGone = true
      var status: Int32 = 0
      // A process that has reported everything is about to exit, and its own status says more than a signal's.
      for _ in 0..<100 {
        let ended = waitpid(id, &status, WNOHANG)
        if ended == id { return Self.description(of: status) }
        if ended < 0 && errno != EINTR { return "it is gone" }
        guard hasToldEverything else { break }
        usleep(10_000)
      }
      kill(id, SIGKILL)
      while waitpid(id, &status, 0) < 0 && errno == EINTR {}
      return "it did not say in time that it serves"
    }
  }

  /// Whether its end of the channel is closed.
  private var hasToldEverything: Bool {
    var wanted = pollfd(fd: channel, events: 0, revents: 0)
    return poll(&wanted, 1, 0) > 0 && wanted.revents & Int16(POLLHUP) != 0
  }

  private static func description(of status: Int32) -> String {
    let signal = status & 0x7F
    return signal == 0 ? "it ended with status \(status >> 8 & 0xFF)" : "signal \(signal) ended it"
  }
}
