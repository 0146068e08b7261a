internal import Glibc
internal import Transport

/// Connections to upstreams that wait for another request. A loop has its own.
struct KeptUpstreams {
  /// How many wait for each upstream; further ones are closed.
  static let most = 32
  /// How long one waits. Shorter than what servers keep theirs for (Node.js: 5 s), so that the gate closes first: a
  /// request that crosses the upstream's close would be lost.
  static let patience = Duration.seconds(4)

  private var waiting: [Upstream: [KeptUpstream]] = [:]

  /// The one that has waited the shortest.
  mutating func take(_ upstream: Upstream) -> KeptUpstream? {
    let kept = waiting[upstream]?.popLast()
    if waiting[upstream]?.isEmpty == true { waiting[upstream] = nil }
    return kept
  }

  /// `false` if enough wait already.
  mutating func add(_ kept: KeptUpstream) -> Bool {
    guard waiting[kept.upstream]?.count ?? 0 < Self.most else { return false }
    waiting[kept.upstream, default: []].append(kept)
    return true
  }

  /// Those that wait.
  var all: [KeptUpstream] { waiting.values.flatMap(\.self) }

  mutating func remove(_ kept: KeptUpstream) {
    waiting[kept.upstream]?.removeAll { $0 === kept }
    if waiting[kept.upstream]?.isEmpty == true { waiting[kept.upstream] = nil }
  }
}

/// One such connection. Whatever it says unasked, it is closed.
final class KeptUpstream: LoopChannel {
  let upstream: Upstream
  private var link: Link
  private let timer = UnsafeMutablePointer<TimerNode>.allocate(capacity: 1)

  /// Takes over `link`, which has no watcher.
  init(_ link: Link, to upstream: Upstream) {
    self.link = link
    self.upstream = upstream
    timer.initialize(to: TimerNode())
  }

  deinit {
    link.close()
    timer.deallocate()
  }

  func wait(in loop: EventLoop) {
    loop.insert(self)
    timer.pointee.slot = token.slot
    loop.timers.schedule(timer, at: loop.now + KeptUpstreams.patience.milliseconds)
    loop.watch(link.fd, events: Readiness.input, data: EventLoop.data(token))
  }

  /// Gives the connection back, unless the upstream has closed it or said something by now: then it is closed.
  func end(in loop: EventLoop) -> Link? {
    withdraw(from: loop)
    var byte: UInt8 = 0
    guard recv(link.fd, &byte, 1, Int32(MSG_PEEK)) < 0, errno == EAGAIN else { return nil }
    defer { link = Link() }
    return link
  }

  /// From now on no event wakes it. It keeps the socket, and closes it with itself.
  private func withdraw(from loop: EventLoop) {
    loop.timers.cancel(timer)
    loop.unwatch(link.fd)
    loop.remove(self)
  }

  func leave(_ loop: EventLoop) {
    loop.keptUpstreams.remove(self)
    withdraw(from: loop)
    link.close()
  }

  override func ready(_ events: UInt32, in loop: EventLoop) { leave(loop) }
  override func expired(in loop: EventLoop) { leave(loop) }
  override func abandon(in loop: EventLoop) { leave(loop) }
}
