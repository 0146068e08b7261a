internal import Glibc
internal import Transport

/// The pool of idle upstream connections. Each loop has its own.
struct UpstreamPool {
  /// The maximum number of connections per upstream; further ones are closed.
  static let most = 32
  /// How long a connection stays in the pool. It is shorter than the keep-alive of common servers (Node.js: 5 s), so
  /// that the gate closes first: a request that crosses the upstream's close would be lost.
  static let patience = Duration.seconds(4)

  private var waiting: [Upstream: [PooledUpstream]] = [:]

  /// Takes the most recently used connection.
  mutating func take(_ upstream: Upstream) -> PooledUpstream? {
    let kept = waiting[upstream]?.popLast()
    if waiting[upstream]?.isEmpty == true { waiting[upstream] = nil }
    return kept
  }

  /// Adds a connection. Returns `false` if the pool is full for this upstream.
  mutating func add(_ kept: PooledUpstream) -> Bool {
    guard waiting[kept.upstream]?.count ?? 0 < Self.most else { return false }
    waiting[kept.upstream, default: []].append(kept)
    return true
  }

  /// All pooled connections.
  var all: [PooledUpstream] { waiting.values.flatMap(\.self) }

  mutating func remove(_ kept: PooledUpstream) {
    waiting[kept.upstream]?.removeAll { $0 === kept }
    if waiting[kept.upstream]?.isEmpty == true { waiting[kept.upstream] = nil }
  }
}

/// One pooled connection. It is closed if the upstream closes it or sends anything.
final class PooledUpstream: LoopChannel {
  let upstream: Upstream
  private var socket: SocketState
  private let timer = UnsafeMutablePointer<TimerNode>.allocate(capacity: 1)

  /// Takes ownership of `link`, which epoll does not watch.
  init(_ socket: SocketState, to upstream: Upstream) {
    self.socket = socket
    self.upstream = upstream
    timer.initialize(to: TimerNode())
  }

  deinit {
    socket.close()
    timer.deallocate()
  }

  func wait(in loop: EventLoop) {
    loop.insert(self)
    timer.pointee.slot = token.slot
    loop.timers.schedule(timer, at: loop.now + UpstreamPool.patience.milliseconds)
    loop.watch(socket.fd, events: Readiness.input, data: EventLoop.data(token))
  }

  /// Takes the connection out of the pool; `nil` if the upstream has closed it or sent something, which closes it.
  func end(in loop: EventLoop) -> SocketState? {
    withdraw(from: loop)
    var byte: UInt8 = 0
    guard recv(socket.fd, &byte, 1, Int32(MSG_PEEK)) < 0, errno == EAGAIN else { return nil }
    defer { socket = SocketState() }
    return socket
  }

  /// Stops the timer and the watch. The channel still owns `link` and closes it when released.
  private func withdraw(from loop: EventLoop) {
    loop.timers.cancel(timer)
    loop.unwatch(socket.fd)
    loop.remove(self)
  }

  func leave(_ loop: EventLoop) {
    loop.keptUpstreams.remove(self)
    withdraw(from: loop)
    socket.close()
  }

  override func ready(_ events: UInt32, in loop: EventLoop) { leave(loop) }
  override func expired(in loop: EventLoop) { leave(loop) }
  override func abandon(in loop: EventLoop) { leave(loop) }
}
