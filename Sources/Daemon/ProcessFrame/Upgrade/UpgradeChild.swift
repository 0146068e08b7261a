internal import CServiceProcess
internal import Dispatch
internal import Glibc
internal import Locking

/// The new process of a graceful upgrade, which takes over from this one.
///
/// It inherits listening sockets as systemd passes them (sd_listen_fds(3)): `LISTEN_FDS`, `LISTEN_FDNAMES`,
/// `LISTEN_PID`. One more descriptor, named `UpgradeParent.descriptorName`, is the channel on which it reports
/// readiness or a failure, and another, `LingeringProcesses.descriptorName`, that on which it asks this process to end.
///
/// It is a grandchild of this process until `release()`.
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
  /// The child of this process that waits for the new process.
  private let waiter: Int32
  /// The descriptor on which the waiter reports the end of the new process.
  private let life: LockedValue<Int32>
  /// The descriptor on which the report arrives. Closed when this object is released.
  private let channel: Int32
  /// The descriptor on which a request to end arrives. Closed when this object is released.
  private let requests: Int32
  private let isGone = LockedValue(false)

  private init(_ child: upgrade_child, channel: Int32, requests: Int32) {
    (id, waiter, life) = (child.id, child.waiter, LockedValue(child.life))
    self.channel = channel
    self.requests = requests
  }

  deinit {
    release()
    close(channel)
    close(requests)
  }

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
    var (ends, requests): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
    guard upgrade_child_pipe(&ends) == 0 else { throw fault("cannot create a pipe") }
    defer { close(ends[1]) }
    guard upgrade_child_socket_pair(&requests) == 0 else {
      let fault = fault("cannot create a socket")
      close(ends[0])
      throw fault
    }
    defer { close(requests[1]) }
    let passed =
      sockets + [
        (name: LingeringProcesses.descriptorName, descriptor: requests[1]),
        (name: UpgradeParent.descriptorName, descriptor: ends[1]),
      ]
    var environment = environment.filter { !ownVariables.contains($0.key) }
    environment["LISTEN_FDS"] = String(passed.count)
    environment["LISTEN_FDNAMES"] = passed.map(\.name).joined(separator: ":")
    var child = upgrade_child()
    let status = spawn(program, environment.map { "\($0.key)=\($0.value)" }, passed.map(\.descriptor), &child)
    guard status == 0 else {
      let fault = fault("\(program.path) cannot be started")
      for descriptor in [ends[0], requests[0]] { close(descriptor) }
      throw fault
    }
    return UpgradeChild(child, channel: ends[0], requests: requests[0])
  }

  /// The variables that systemd sets for one process only.
  private static let ownVariables: Set = [
    "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_PIDFDID", "WATCHDOG_PID",
  ]

  private static func fault(_ what: String) -> StartError {
    StartError(description: "\(what): \(String(cString: strerror(errno)))")
  }

  private static func spawn(
    _ program: ExecutableLocator, _ environment: [String], _ descriptors: [Int32], _ child: inout upgrade_child
  ) -> Int32 {
    let name = "LISTEN_PID="
    // Enough for any process id and a terminating zero.
    let room = 24
    let place = name + String(repeating: " ", count: room)
    return withCStrings(program.arguments) { arguments in
      withCStrings([place] + environment) { environment in
        // The first string is `place`, so it exists and has `room` bytes after its name.
        let ownID = environment[0].map { $0 + name.utf8.count }
        return upgrade_child_start(
          program.path, arguments, environment, descriptors, Int32(descriptors.count), ownID, room,
          &child)
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

  /// Kills the new process unless it has exited, and returns the reason. Blocks until it has exited. Later calls, and
  /// calls after `release()`, do nothing.
  @discardableResult
  public func end() -> String {
    let isFirst = isGone.withLock { isGone in
      defer { isGone = true }
      return !isGone
    }
    guard isFirst else { return "the new process was stopped" }
    defer { releaseNow() }
    // A process that has closed the channel is about to exit, and its own status says more than a signal's.
    if let end = ending(within: hasToldEverything ? 1000 : 0) { return end }
    // The waiter has not reaped it, so the id is still its own.
    kill(id, SIGKILL)
    _ = ending(within: -1)
    return "the new process did not report readiness in time"
  }

  /// Makes the new process a child of process 1, so that a service manager hears of its end. Call it before the service
  /// manager is told of the new main process: systemd decides only then whether the process is its own child. After
  /// this call `end()` does nothing.
  public func release() {
    isGone.withLock { $0 = true }
    releaseNow()
  }

  private func releaseNow() {
    life.withLock { life in
      guard life >= 0 else { return }
      close(life)
      upgrade_child_reap(waiter)
      life = -1
    }
  }

  /// Waits at most `milliseconds` (-1: without limit) for the end of the new process, and describes it; `nil` if it has
  /// not ended.
  private func ending(within milliseconds: Int32) -> String? {
    life.withLock { life -> String? in
      var wanted = pollfd(fd: life, events: Int16(POLLIN), revents: 0)
      var count = poll(&wanted, 1, milliseconds)
      while count < 0 && errno == EINTR { count = poll(&wanted, 1, milliseconds) }
      guard count > 0 else { return nil }
      var end = upgrade_child_end()
      // A waiter that was killed has reported nothing.
      guard
        recv(life, &end, MemoryLayout.size(ofValue: end), Int32(MSG_WAITALL))
          == MemoryLayout.size(ofValue: end)
      else { return nil }
      return end.has_exited == 1
        ? "the new process exited with status \(end.status)" : "the new process was killed by signal \(end.status)"
    }
  }

  /// Whether the new process has closed its end of the channel.
  private var hasToldEverything: Bool {
    var wanted = pollfd(fd: channel, events: 0, revents: 0)
    return poll(&wanted, 1, 0) > 0 && wanted.revents & Int16(POLLHUP) != 0
  }

  // MARK: A request to end

  /// Waits until the new process, or one that has replaced it, asks this process to close its sessions.
  ///
  /// - Returns: `false` if no such process runs any more, or if the task is cancelled.
  public func isAskedToEnd() async -> Bool {
    // A copy, which the source closes when it no longer watches it.
    let copy = fcntl(requests, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return false }
    let (stream, continuation) = AsyncStream.makeStream(of: Bool.self)
    let source = DispatchSource.makeReadSource(fileDescriptor: copy, queue: .global())
    source.setEventHandler {
      var byte: UInt8 = 0
      let count = recv(copy, &byte, 1, Int32(MSG_DONTWAIT))
      if count < 0 && (errno == EAGAIN || errno == EINTR) { return }
      continuation.yield(count > 0)
      continuation.finish()
    }
    source.setCancelHandler { close(copy) }
    source.activate()
    defer { source.cancel() }
    for await isAsked in stream { return isAsked }
    return false
  }
}
