internal import CLinux
internal import Glibc
internal import Locking

/// A thread that owns its connections: it waits, reads, decides and writes, and shares nothing with other threads but a
/// mailbox.
///
/// `@unchecked Sendable`: everything but `mailbox` and `wakeUp` is touched by the loop's own thread alone, from `run()`
/// on; others hand it closures through `execute`.
final class EventLoop: @unchecked Sendable {
  typealias Job = @Sendable (EventLoop) -> Void

  let window: UnsafeMutablePointer<TLSWindow>
  let bio: WindowBIO
  let plain = PlainBuffer()
  /// When the current wake-up began.
  private(set) var now: Milliseconds
  var timers: TimerWheel
  var slots = SlotTable()
  var random = RandomPool()
  /// What decides, and on which terms. `nil` in a loop that only opens connections.
  var service: SessionService?
  /// Tests put one of their own here.
  var resolver: Resolver
  /// Sessions, in whatever phase.
  var sessionCount = 0
  /// What the sessions that are over carried.
  var ended = EngineTraffic()
  var drain: Drain?
  var keptUpstreams = KeptUpstreams()
  var listeners: [Listener] = []
  /// Whether the next answer of a connection is its last: there is a better place for the next request.
  private(set) var isLeaving = false

  private let epoll: Int32
  private let wakeUp: Int32
  private let mailbox = Guarded<[Job]?>([])
  /// Who wants to hear of the end; `nil` behind it.
  private let waitingForEnd = Guarded<[@Sendable () -> Void]?>([])
  private var isStopping = false

  init(service: SessionService?, resolver: Resolver) throws(SystemCallError) {
    epoll = try attempt("epoll_create1") { shim_epoll_create() }
    do {
      wakeUp = try attempt("eventfd") { shim_eventfd() }
    } catch {
      Glibc.close(epoll)
      throw error
    }
    self.service = service
    self.resolver = resolver
    bio = WindowBIO()
    window = bio.window
    now = monotonicMilliseconds()
    timers = TimerWheel(now: now)
    watch(wakeUp, events: Readiness.input, data: Self.wakeUpData)
  }

  deinit {
    Glibc.close(wakeUp)
    Glibc.close(epoll)
    bio.deallocate()
    plain.deallocate()
    timers.deallocate()
    slots.deallocate()
    random.deallocate()
  }

  // MARK: From any thread

  /// Has `job` run on the loop's thread, after the events at hand. Jobs of one thread run in the order given.
  ///
  /// - Returns: `false` if the loop has stopped: then `job` is dropped. What is accepted is always run.
  @discardableResult
  func execute(_ job: @escaping Job) -> Bool {
    let count = mailbox.withLock { jobs -> Int? in
      jobs?.append(job)
      return jobs?.count
    }
    if count == 1 {
      var one: UInt64 = 1
      // The descriptor closes with the loop, and its number may be another file's by then.
      _ = withExtendedLifetime(self) { write(wakeUp, &one, 8) }
    }
    return count != nil
  }

  // MARK: On the loop's thread

  /// Works until `stop()`.
  func run() {
    let capacity = 256
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
    defer { events.deallocate() }
    while !isStopping {
      let delay = timers.delay(from: now).map { Int32(min($0, 60_000)) } ?? -1
      let count = epoll_wait(epoll, events, Int32(capacity), delay)
      now = monotonicMilliseconds()
      for index in 0..<Int(max(count, 0)) { dispatch(events[index]) }
      while let slot = timers.nextExpired(now: now) { expire(slot) }
    }
    closeEverything()
    closeMailbox()
    OpenSSLProcess.threadEnds()
    let waiting = waitingForEnd.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    for body in waiting ?? [] { body() }
  }

  /// Calls `body` once all is closed, at once if it is.
  func whenEnded(_ body: @escaping @Sendable () -> Void) {
    let isRunning = waitingForEnd.withLock { waiting in
      waiting?.append(body)
      return waiting != nil
    }
    if !isRunning { body() }
  }

  func stop() { isStopping = true }

  /// Accepts from now on only clients that have connected already and that no other process would accept.
  func stopListening() {
    isLeaving = true
    for listener in listeners { listener.leave(in: self) }
    listeners = []
  }

  private static let wakeUpData = UInt64.max

  private func dispatch(_ event: epoll_event) {
    let data = event.data.u64
    guard data != Self.wakeUpData else {
      runMailbox()
      return
    }
    let token = SlotToken(slot: UInt32(truncatingIfNeeded: data >> 33), generation: UInt32(truncatingIfNeeded: data))
    if let session = slots.session(token) {
      ready(session, side: data & 1 << 32 == 0 ? .client : .upstream, event.events)
    } else if let channel = slots.channel(token) {
      channel.ready(event.events, in: self)
    }
  }

  private func expire(_ slot: UInt32) {
    guard let token = slots.token(in: slot) else { return }
    if let session = slots.session(token) {
      expired(session)
    } else if let channel = slots.channel(token) {
      channel.expired(in: self)
    }
  }

  private func runMailbox() {
    var count: UInt64 = 0
    _ = read(wakeUp, &count, 8)
    let jobs = mailbox.withLock { jobs in
      let taken = jobs
      jobs = []
      return taken
    }
    for job in jobs ?? [] { job(self) }
  }

  /// Runs what was accepted so far, and accepts nothing more.
  private func closeMailbox() {
    while true {
      let jobs = mailbox.withLock { jobs in
        let taken = jobs ?? []
        jobs = taken.isEmpty ? nil : []
        return taken
      }
      if jobs.isEmpty { return }
      for job in jobs { job(self) }
      closeEverything()
    }
  }

  private func closeEverything() {
    listeners = []
    for slot in 0..<slots.end {
      guard let token = slots.token(in: slot) else { continue }
      if let session = slots.session(token) {
        destroy(session, lost: (.client, "the gate stopped"))
      } else if let channel = slots.channel(token) {
        channel.abandon(in: self)
      }
    }
  }

  // MARK: Sockets

  static func data(_ token: SlotToken, _ side: Side = .client) -> UInt64 {
    UInt64(token.slot) << 33 | (side == .upstream ? 1 << 32 : 0) | UInt64(token.generation)
  }

  func watch(_ fd: Int32, events: UInt32, data: UInt64) {
    control(EPOLL_CTL_ADD, fd, events, data)
  }

  func rewatch(_ fd: Int32, events: UInt32, data: UInt64) {
    control(EPOLL_CTL_MOD, fd, events, data)
  }

  func unwatch(_ fd: Int32) {
    control(EPOLL_CTL_DEL, fd, 0, 0)
  }

  private func control(_ operation: Int32, _ fd: Int32, _ events: UInt32, _ data: UInt64) {
    shim_epoll_ctl(epoll, operation, fd, events, data)
  }

  // MARK: Channels

  /// Gives `channel` a slot and keeps it until `remove`.
  func insert(_ channel: LoopChannel) {
    channel.token = slots.insert(Unmanaged.passRetained(channel).toOpaque(), .channel)
  }

  func remove(_ channel: LoopChannel) {
    guard slots.channel(channel.token) === channel else { return }
    slots.remove(channel.token.slot)
    Unmanaged.passUnretained(channel).release()
  }
}

/// What epoll can say, as plain numbers.
enum Readiness {
  static let input = shim_EPOLLIN
  /// Of several loops that watch one socket, wakes one and not all.
  static let exclusive = shim_EPOLLEXCLUSIVE
  static let output = shim_EPOLLOUT
  static let failed = shim_EPOLLERR
  /// Nothing but errors, and these once: a socket that is not read for now.
  static let reset = shim_EPOLLET
}
