internal import CLinux
internal import Glibc
internal import Transport

/// A listening socket of one loop. With several loops, each has its own socket on the same port (`SO_REUSEPORT`), and
/// the kernel distributes new connections over them.
final class Listener: LoopChannel {
  let fd: Int32
  private let timer = UnsafeMutablePointer<TimerNode>.allocate(capacity: 1)
  private var isPaused = false
  /// Whether others listen on the same socket: other loops, the process that created it, or the new process of a
  /// graceful upgrade. They must be able to continue when this listener stops.
  private var isShared: Bool

  /// Takes ownership of `fd`.
  init(fd: Int32, isShared: Bool = false) {
    self.fd = fd
    self.isShared = isShared
    // Linux passes the option on to accepted sockets. A Unix socket has none.
    Socket.disableDelay(on: fd)
    timer.initialize(to: TimerNode())
  }

  deinit {
    close(fd)
    timer.deallocate()
  }

  func start(in loop: EventLoop) {
    loop.insert(self)
    timer.pointee.slot = token.slot
    watch(in: loop)
  }

  private func watch(in loop: EventLoop) {
    let events = isShared ? Readiness.input | Readiness.exclusive : Readiness.input
    loop.watch(fd, events: events, data: EventLoop.data(token))
  }

  /// The length of the queue of connections that are not yet accepted.
  private static let backlog: Int32 = 4096
  /// The maximum number of connections that are accepted in one round.
  private static let most = 32
  /// The number of connections to accept in the next round.
  private var width = 1
  /// The loop's turn after one in which a whole round was accepted.
  private var nextTurn: UInt64 = 0

  /// Marks the socket as shared with other listeners.
  func share() { isShared = true }

  /// Stops listening. On a shared socket, connections that are not yet accepted stay in the queue for the other
  /// listeners. Otherwise they are accepted and get a lingering close; later connections are refused.
  func leave(in loop: EventLoop) {
    // At most one full queue: clients may keep connecting while this runs.
    var rounds = isShared ? 0 : Int(Self.backlog) / Self.most
    while rounds > 0, accept(Self.most, in: loop) { rounds -= 1 }
    stop(in: loop)
  }

  private func stop(in loop: EventLoop) {
    loop.timers.cancel(timer)
    endPause(in: loop)
    if !isShared { shutdown(fd, Int32(SHUT_RDWR)) }
    loop.unwatch(fd)
    loop.remove(self)
  }

  /// Accepts one connection: to learn that there is no second one would cost as much as the next event. In a flood,
  /// when the queue is not empty in the next turn either, each round is twice as wide as the one before.
  override func ready(_ events: UInt32, in loop: EventLoop) {
    width = loop.turn == nextTurn ? min(width * 2, Self.most) : 1
    guard accept(width, in: loop) else { return }
    nextTurn = loop.turn + 1
    if width > 1 { loop.floodTurn = loop.turn }
  }

  /// Accepts at most `count` connections, so that a flood of new ones does not delay the open ones. Returns `false` if
  /// the queue is empty or accepting failed.
  private func accept(_ count: Int, in loop: EventLoop) -> Bool {
    for _ in 0..<count {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let accepted = withUnsafeMutablePointer(to: &storage) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          shim_accept(fd, $0, &length)
        }
      }
      guard accepted >= 0 else {
        let code = errno
        if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(code) { pause(in: loop, SystemCallError.text(of: code)) }
        return code == ECONNABORTED || code == EINTR
      }
      // The kernel gives the lowest free number.
      guard accepted < ceiling(in: loop) else {
        pause(in: loop, "only descriptors for operators are left: raise LimitNOFILE or ulimit -n")
        close(accepted)
        return false
      }
      loop.adopt(accepted, from: Socket.address(from: storage))
    }
    return true
  }

  private func ceiling(in loop: EventLoop) -> Int32 { loop.service?.limits.descriptorCeiling ?? .max }

  /// Whether a client would get a descriptor now. A connection that was accepted to learn it would be lost.
  private func hasDescriptor(in loop: EventLoop) -> Bool {
    let probe = fcntl(fd, F_DUPFD_CLOEXEC, 0)
    guard probe >= 0 else { return false }
    close(probe)
    return probe < ceiling(in: loop)
  }

  /// Pauses when the process is out of descriptors or memory: epoll would report the same connection again and again.
  private func pause(in loop: EventLoop, _ reason: String) {
    guard !isPaused else { return }
    isPaused = true
    loop.backlog.notePause(began: true)
    loop.service?.report(.acceptPaused(reason: reason))
    loop.unwatch(fd)
    loop.timers.schedule(timer, at: loop.now + 200)
  }

  private func endPause(in loop: EventLoop) {
    guard isPaused else { return }
    isPaused = false
    loop.backlog.notePause(began: false)
  }

  override func abandon(in loop: EventLoop) { stop(in: loop) }

  override func expired(in loop: EventLoop) {
    guard hasDescriptor(in: loop) else {
      loop.timers.schedule(timer, at: loop.now + 200)
      return
    }
    endPause(in: loop)
    watch(in: loop)
  }
}

extension Listener {
  /// Opens listening sockets for `count` loops.
  ///
  /// The address must be free: no other process may listen there, not even another gate of the same user, although
  /// the sockets of this gate share the port.
  static func open(_ address: SocketAddress, count: Int) throws(SystemCallError) -> [Int32] {
    close(try openOne(address, sharesPort: false))
    var sockets = [try openOne(address, sharesPort: true)]
    let bound = Socket.localAddress(of: sockets[0])
    while sockets.count < count {
      do {
        sockets.append(try openOne(address.withPort(of: bound), sharesPort: true))
      } catch {
        for fd in sockets { close(fd) }
        throw error
      }
    }
    return sockets
  }

  private static func openOne(_ address: SocketAddress, sharesPort: Bool) throws(SystemCallError) -> Int32 {
    let fd = try Socket.make(for: address)
    do {
      Socket.set(SO_REUSEADDR, to: 1, on: fd)
      if sharesPort { Socket.set(SO_REUSEPORT, to: 1, on: fd) }
      if case .ipv6 = address { Socket.set(IPV6_V6ONLY, level: Int32(IPPROTO_IPV6), to: 0, on: fd) }
      _ = try attempt("bind") { Socket.withSystemAddress(address) { bind(fd, $0, $1) } }
      _ = try attempt("listen") { listen(fd, backlog) }
      return fd
    } catch {
      close(fd)
      throw error
    }
  }
}

extension SocketAddress {
  /// Whether the address reaches this machine alone (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
  var isLoopback: Bool {
    switch self {
    case .ipv4(let bytes, _): bytes.first == 127
    case .ipv6(let bytes, _): bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    case .unix: true
    }
  }

  func isSameFamily(as other: SocketAddress) -> Bool {
    switch (self, other) {
    case (.ipv4, .ipv4), (.ipv6, .ipv6), (.unix, .unix): true
    default: false
    }
  }

  func withPort(of other: SocketAddress) -> SocketAddress {
    switch (self, other) {
    case (.ipv4(let bytes, _), .ipv4(_, let port)), (.ipv4(let bytes, _), .ipv6(_, let port)):
      .ipv4(bytes, port: port)
    case (.ipv6(let bytes, _), .ipv6(_, let port)), (.ipv6(let bytes, _), .ipv4(_, let port)):
      .ipv6(bytes, port: port)
    default: self
    }
  }
}
