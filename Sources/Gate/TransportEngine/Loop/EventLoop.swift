internal import CLinux
internal import Glibc
internal import Locking

/// The event loop of one thread and its connections. It waits, reads, decides and writes, and shares only a
/// mailbox with other threads.
///
/// `@unchecked Sendable`: from `run()` on, only the loop's own thread touches the state, except `mailbox`, `wakeUp`,
/// `waitingForEnd` and `backlog`. Other threads pass closures through `execute`.
///
/// Properties that every event reads have no run-time check of exclusive access: only short reads and writes touch
/// them, and the checks cost a connection some thousand instructions.
final class EventLoop: @unchecked Sendable {
  typealias Job = @Sendable (EventLoop) -> Void

  let buffers: UnsafeMutablePointer<TLSBuffers>
  let bio: BufferBIO
  let plain = PlainBuffer()
  /// The time at which the current wake-up began.
  @exclusivity(unchecked)
  private(set) var now: Milliseconds
  /// By how much this loop's clock is ahead of the monotonic clock: see `pass(_:)`.
  @exclusivity(unchecked)
  private var lead: Milliseconds = 0
  /// The number of the current wake-up.
  @exclusivity(unchecked)
  private(set) var turn: UInt64 = 0
  /// The last turn in which a listener accepted a whole round, as in the turn before: its queue may hold more.
  @exclusivity(unchecked)
  var floodTurn: UInt64 = 0
  @exclusivity(unchecked)
  var timers: TimerWheel
  @exclusivity(unchecked)
  var slots = SlotTable()
  @exclusivity(unchecked)
  var random = RandomPool()
  /// The responder and its configuration. `nil` in a loop that only opens connections.
  @exclusivity(unchecked)
  var service: SessionService?
  /// Tests replace it.
  var resolver: Resolver
  /// The number of sessions, in any phase.
  @exclusivity(unchecked)
  var sessionCount = 0
  /// The number of times that the loop began to wait for a client. Milliseconds would not order a flood.
  @exclusivity(unchecked)
  private var waits: UInt64 = 0
  /// The traffic of the sessions that have ended.
  @exclusivity(unchecked)
  var ended = EngineTraffic()
  @exclusivity(unchecked)
  var drain: Drain?
  var keptUpstreams = UpstreamPool()
  var listeners: [Listener] = []
  /// Whether every connection closes after its next response, because the loop no longer listens.
  @exclusivity(unchecked)
  private(set) var isLeaving = false
  /// What other threads may know of the connections that wait for this loop.
  let backlog = OpeningBacklog()
  /// When connections that are not open yet began to wait in every turn; `nil` if none had to in the last one.
  @exclusivity(unchecked)
  private var behindSince: Milliseconds?

  private let epoll: Int32
  private let wakeUp: Int32
  private let mailbox = LockedValue<[Job]?>([])
  /// Callbacks for the end of the loop; `nil` after the end.
  private let waitingForEnd = LockedValue<[@Sendable () -> Void]?>([])
  @exclusivity(unchecked)
  private var isStopping = false
  /// The thread of `run()`.
  private var thread: pthread_t?

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
    bio = BufferBIO()
    buffers = bio.buffers
    now = monotonicMilliseconds()
    timers = TimerWheel(now: now)
    watch(wakeUp, events: Readiness.input, data: Self.wakeUpData)
  }

  func nextWaitOrder() -> UInt64 {
    waits &+= 1
    return waits
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

  /// Runs `job` on the loop's thread, after the current events. Jobs from one thread run in their order.
  ///
  /// - Returns: `false` if the loop has stopped; `job` is then dropped. Every accepted job runs.
  @discardableResult
  func execute(_ job: @escaping Job) -> Bool {
    let count = mailbox.withLock { jobs -> Int? in
      jobs?.append(job)
      return jobs?.count
    }
    if count == 1 {
      var one: UInt64 = 1
      // Keeps the loop alive during the write: its descriptor closes with it, and the number may
      // then belong to another file.
      _ = withExtendedLifetime(self) { write(wakeUp, &one, 8) }
    }
    return count != nil
  }

  // MARK: On the loop's thread

  /// Traps on any other thread. The state has no lock, and its checks of exclusive access are off.
  func requireOwnThread() { precondition(thread == pthread_self(), "not on the event loop's thread") }

  /// Runs the loop until `stop()`.
  func run() {
    thread = pthread_self()
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.mostEvents)
    defer { events.deallocate() }
    while !isStopping {
      let count = epoll_wait(epoll, events, Int32(Self.mostEvents), delay)
      now = monotonicMilliseconds() &+ lead
      turn &+= 1
      var isBehind = false
      if count <= Self.mostOpenings {
        for index in 0..<Int(max(count, 0)) { dispatch(events[index]) }
      } else {
        isBehind = dispatchOpenFirst(events, Int(count))
      }
      noteBacklog(isBehind || floodTurn == turn)
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

  /// The time until the next timer in milliseconds, for epoll; -1 for none.
  private var delay: Int32 {
    let timer = timers.delay(from: now).map { Int32(min($0, 60_000)) } ?? -1
    guard behindSince != nil else { return timer }
    // If nothing more is ready, the loop is not behind any more and must say so.
    return timer < 0 ? Self.backlogPause : min(timer, Self.backlogPause)
  }

  /// Notes whether connections that are not open yet wait for the next turn.
  private func noteBacklog(_ isBehind: Bool) {
    if isBehind {
      let since = behindSince ?? now
      behindSince = since
      backlog.noteBehind(for: now - since)
    } else if behindSince != nil {
      behindSince = nil
      backlog.noteBehind(for: 0)
    }
  }

  /// Calls `body` once the loop has closed everything; at once if it already has.
  func whenEnded(_ body: @escaping @Sendable () -> Void) {
    let isRunning = waitingForEnd.withLock { waiting in
      waiting?.append(body)
      return waiting != nil
    }
    if !isRunning { body() }
  }

  func stop() { isStopping = true }

  /// Lets `time` pass at once, for tests that do not wait: deadlines within it expire in this iteration.
  func pass(_ time: Milliseconds) {
    requireOwnThread()
    lead += time
    now += time
  }

  /// Stops listening. Connections in the queue that no other process would accept are accepted first.
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
    let token = Self.token(data)
    if let session = slots.session(token) {
      ready(session, side: data & 1 << 32 == 0 ? .client : .upstream, event.events)
    } else if let channel = slots.channel(token) {
      channel.ready(event.events, in: self)
    }
  }

  /// The maximum number of events that the loop takes at once.
  private static let mostEvents = 4096
  /// The maximum number of events of connections that are not open yet, where more are ready.
  private static let mostOpenings = 32
  /// The longest wait of a loop that is behind, in milliseconds.
  private static let backlogPause: Int32 = 100

  /// Dispatches the events of open sessions, and then the first ones of connections that are not open yet: a session
  /// does not wait until thousands of clients that come back at once have their handshakes.
  ///
  /// The rest of these is left to the next turn. epoll reports them again and in the same order, because each is still
  /// ready. A listening socket is one of them, so that accepting does not run ahead of the handshakes: further clients
  /// wait in the kernel's queue, where their time limits in the gate have not begun.
  ///
  /// - Returns: Whether the next turn has a rest.
  private func dispatchOpenFirst(_ events: UnsafeMutablePointer<epoll_event>, _ count: Int) -> Bool {
    var openings = 0
    for index in 0..<count {
      if isOfOpening(events[index]) {
        events[openings] = events[index]
        openings += 1
      } else {
        dispatch(events[index])
      }
    }
    for index in 0..<min(openings, Self.mostOpenings) { dispatch(events[index]) }
    return openings > Self.mostOpenings
  }

  /// Whether the event is of a connection that is not open yet, or of a listening socket, and is reported again.
  private func isOfOpening(_ event: epoll_event) -> Bool {
    // Others are reported once: see `Readiness.reset`.
    guard event.events & (Readiness.input | Readiness.output) != 0, event.data.u64 != Self.wakeUpData else {
      return false
    }
    let token = Self.token(event.data.u64)
    if let session = slots.session(token) { return session.pointee.phase.isOpening }
    return slots.channel(token) is Listener
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

  /// Runs the accepted jobs and then refuses new ones.
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

  private static func token(_ data: UInt64) -> SlotToken {
    SlotToken(slot: UInt32(truncatingIfNeeded: data >> 33), generation: UInt32(truncatingIfNeeded: data))
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

  /// Gives `channel` a slot and retains it until `remove`.
  func insert(_ channel: LoopChannel) {
    channel.token = slots.insert(Unmanaged.passRetained(channel).toOpaque(), .channel)
  }

  func remove(_ channel: LoopChannel) {
    guard slots.channel(channel.token) === channel else { return }
    slots.remove(channel.token.slot)
    Unmanaged.passUnretained(channel).release()
  }
}

/// The event flags of epoll as plain numbers.
enum Readiness {
  static let input = shim_EPOLLIN
  /// Wakes one loop, not all, of several that watch the same socket.
  static let exclusive = shim_EPOLLEXCLUSIVE
  static let output = shim_EPOLLOUT
  static let failed = shim_EPOLLERR
  /// Reports only errors, and each once: for a socket that is not being read.
  static let reset = shim_EPOLLET
  /// Like `reset`, and reports the end of the peer's stream, even behind bytes that were not read.
  static let departure = shim_EPOLLET | EPOLLRDHUP.rawValue
}
