internal import Glibc
internal import Locking
public import Transport

/// How the engine treats connections before anything is decided about them.
public struct EngineLimits: Sendable, Hashable {
  /// From the accepted connection to the end of the TLS handshake.
  public var handshakeTimeout: Duration = .seconds(10)
  /// From the first byte of a head to its last, and on a new connection from the handshake on.
  public var headTimeout: Duration = .seconds(10)
  /// From the end of the head to the end of the body.
  public var bodyTimeout: Duration = .seconds(10)
  /// How long a connection may stay open between two requests.
  public var keepAliveTimeout: Duration = .seconds(60)
  /// How long the responder may take.
  public var decisionTimeout: Duration = .seconds(30)
  /// How long an end may take to answer a Close or to close its socket.
  public var closeTimeout: Duration = .seconds(5)
  /// The same for a session whose right has ended (3003, or its greatest age), never more than `closeTimeout`: then both
  /// sockets are cut, also inside a frame. With a second until a change of the store is noticed, and the tick of a timer,
  /// such a session is over within 2 s.
  public var lostRightTimeout: Duration = .milliseconds(700)
  /// Bytes of a request's body.
  public var maxBody = 64 << 10
  /// Requests on one connection.
  public var maxRequests = 1000
  /// Connections of one address at a time, `nil` for any number; further ones are closed before TLS.
  public var connectionsPerAddress: Int?

  public init() {}
}

/// What an operator should know and no request tells.
public enum EngineEvent: Sendable, Hashable {
  /// A connection has come so far that requests can be made; how long that took from its acceptance on.
  case handshakeCompleted(Duration)
  /// A TLS handshake did not succeed. `commonName` is what a certificate that was refused calls its owner, in ASCII and at
  /// most 64 characters, others escaped.
  case handshakeFailed(address: SocketAddress, reason: String, commonName: String? = nil)
  /// No descriptors or no memory for another connection; the listener waits a moment and goes on.
  case acceptPaused(reason: String)
  /// A connection was closed before anything else.
  case connectionRefused(ConnectionRefusal, address: SocketAddress, detail: String? = nil)
}

/// Why a connection was not taken on.
public enum ConnectionRefusal: String, Sendable, Hashable, CaseIterable {
  /// The address has as many as it may have.
  case tooManyOfAddress = "per_ip"
  /// A PROXY header is asked for, and this address is not among those that are believed.
  case untrustedProxy = "proxy_untrusted"
  /// What came is no PROXY header of an allowed version.
  case malformedProxyHeader = "proxy_header"
  /// The PROXY header did not come in time.
  case slowProxyHeader = "proxy_time"
}

/// What all loops of an engine work with.
final class SessionService: Sendable {
  let responder: any RequestResponder
  /// `nil` for a listener without TLS.
  let tls: ServerTLS?
  let limits: EngineLimits
  /// `nil`: connections are their clients' own.
  let proxies: ProxyProtocol?
  let report: @Sendable (EngineEvent) -> Void
  let upstreamTLS = UpstreamTLSCache()
  /// The same for as long as the engine lives.
  let connections: ConnectionCounts

  init(
    responder: any RequestResponder, tls: ServerTLS?, limits: EngineLimits, proxies: ProxyProtocol?,
    report: @escaping @Sendable (EngineEvent) -> Void, connections: ConnectionCounts = ConnectionCounts()
  ) {
    self.proxies = proxies
    self.connections = connections
    self.responder = responder
    self.tls = tls
    self.limits = limits
    self.report = report
  }

  func prepare(_ upstream: Upstream) throws(ServerTLS.Fault) {
    if case .secureWebSocket(_, _, let tls) = upstream { _ = try upstreamTLS.context(for: tls) }
  }
}

/// A server: loops on threads of their own, listening at one address.
///
/// A WebSocket gate in the narrow sense: it ends TLS, reads HTTP/1.1 heads, asks the responder, and relays what was
/// admitted. Every connection belongs to one loop for its whole life; there is no thread per connection.
public final class Engine: Sendable {
  /// Why an engine did not start.
  public struct StartFault: Error, Sendable, CustomStringConvertible {
    public let description: String
    /// The system's error number; 0 where it gave none.
    let number: Int32
    /// Another process listens at the address.
    public var isAddressInUse: Bool { number == EADDRINUSE }
    /// The port, or the folder of the socket, is not for this user.
    public var isForbidden: Bool { number == EACCES || number == EPERM }
  }

  /// Where it listens, with the port that the kernel chose if none was asked for.
  public let address: SocketAddress

  let loops: [EventLoop]
  private let service: Guarded<SessionService>
  /// Of an engine that listens at a Unix socket, until it stops to, or shares it.
  let file: Guarded<UnixSocketFile?>

  /// Starts to listen and to serve.
  ///
  /// - Parameters:
  ///   - address: where to listen. `::` takes IPv4 as well; on a machine without IPv6 it means `0.0.0.0`. A Unix socket
  ///     is for this user alone (mode 0600) and replaces one that a process left behind; its file goes with the engine.
  ///   - loops: how many threads serve, at least 1; one a core is the best there is. A Unix socket has one.
  ///   - tls: `nil` serves without TLS, for tools on loopback.
  ///   - proxies: if given, each connection begins with a PROXY header, ahead of TLS, and only from these.
  ///   - accepts: `false`: who connects waits until `startAccepting()`.
  ///   - report: told what no request tells; called on loops, must not block.
  public convenience init(
    listeningAt address: SocketAddress, loops count: Int, tls: ServerTLS?, responder: any RequestResponder,
    limits: EngineLimits = EngineLimits(), proxies: ProxyProtocol? = nil, accepts: Bool = true,
    report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
  ) throws(StartFault) {
    let sockets: ListeningSockets
    do throws(SystemCallError) {
      sockets = try Self.open(address, count: max(1, count))
    } catch {
      throw StartFault(description: "\(address): \(error)", number: error.number)
    }
    let service = SessionService(
      responder: responder, tls: tls, limits: limits, proxies: proxies, report: report)
    try self.init(sockets, service, accepts: accepts)
  }

  /// Starts to serve on sockets that listen already: systemd's, or those of the process that this one succeeds.
  ///
  /// The engine takes the descriptors over. Others may hold the same sockets: when it ends it leaves those who have not
  /// been accepted yet to them.
  ///
  /// - Parameter ownsFile: whether the file of a Unix socket goes with this engine, as one of its own making does.
  public convenience init(
    inheriting descriptors: [Int32], ownsFile: Bool = false, loops count: Int, tls: ServerTLS?,
    responder: any RequestResponder, limits: EngineLimits = EngineLimits(), proxies: ProxyProtocol? = nil,
    accepts: Bool = true, report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
  ) throws(StartFault) {
    let sockets: ListeningSockets
    do throws(SystemCallError) {
      sockets = try ListeningSockets(inheriting: descriptors, ownsFile: ownsFile, loops: max(1, count))
    } catch {
      throw StartFault(description: "inherited socket: \(error)", number: 0)
    }
    let service = SessionService(
      responder: responder, tls: tls, limits: limits, proxies: proxies, report: report)
    try self.init(sockets, service, accepts: accepts)
  }

  private init(_ sockets: ListeningSockets, _ service: SessionService, accepts: Bool) throws(StartFault) {
    _ = Self.ignoresBrokenPipes
    self.service = Guarded(service)
    file = Guarded(sockets.file)
    address = sockets.address
    do throws(SystemCallError) {
      loops = try Self.startLoops(sockets.each.count, service: service)
    } catch {
      sockets.close()
      throw StartFault(description: "\(sockets.address): \(error)", number: 0)
    }
    for (loop, descriptors) in zip(loops, sockets.each) {
      loop.execute { loop in
        loop.listeners = descriptors.map { Listener(fd: $0, isShared: sockets.isShared) }
      }
    }
    if accepts { startAccepting() }
  }

  /// Takes on those who have connected and those who will, after an `init` that did not. Call it once.
  public func startAccepting() {
    for loop in loops {
      loop.execute { loop in
        for listener in loop.listeners { listener.start(in: loop) }
      }
    }
  }

  // A write to a socket whose reader is gone is an error to handle, not a signal to die of.
  private static let ignoresBrokenPipes: Void = { signal(SIGPIPE, SIG_IGN) }()

  /// All of them, or none.
  private static func startLoops(_ count: Int, service: SessionService) throws(SystemCallError) -> [EventLoop] {
    let resolver = Resolver()
    var running: [EventLoop] = []
    do throws(SystemCallError) {
      for _ in 0..<count {
        let loop = try EventLoop(service: service, resolver: resolver)
        try Thread.start { loop.run() }
        running.append(loop)
      }
    } catch {
      for loop in running { loop.execute { $0.stop() } }
      throw error
    }
    return running
  }

  static func open(_ address: SocketAddress, count: Int) throws(SystemCallError) -> ListeningSockets {
    if case .unix(let path) = address { return ListeningSockets(try UnixSocketFile.listen(at: path)) }
    return ListeningSockets(each: try openPorts(address, count: count).map { [$0] }, isShared: false)
  }

  private static func openPorts(_ address: SocketAddress, count: Int) throws(SystemCallError) -> [Int32] {
    do {
      return try Listener.open(address, count: count)
    } catch {
      guard error.number == EAFNOSUPPORT || error.number == EADDRNOTAVAIL,
        case .ipv6(let bytes, let port) = address, bytes.allSatisfy({ $0 == 0 })
      else { throw error }
      return try Listener.open(.ipv4([0, 0, 0, 0], port: port), count: count)
    }
  }

  /// Reads the authorities that `upstream` is verified with, so that a broken file shows at the start.
  public func prepare(_ upstream: Upstream) throws(ServerTLS.Fault) {
    try service.withLock(\.self).prepare(upstream)
  }

  /// Replaces what decides: `responder` for new requests, and `tls` for new connections.
  ///
  /// Sessions continue as they were begun, and the responder that was asked about a request answers it; the next
  /// request of a connection is for the new one. The new responder sees a client's certificate only if all
  /// authorities that it was verified with are still configured; a new certificate of the server changes nothing.
  /// Files of authorities are read again. When this returns, every loop has changed over. Of two concurrent calls
  /// either may come last on a loop, so make them one after the other.
  ///
  /// - Parameters:
  ///   - limits: for new connections; `nil` leaves them as they are. Open connections stay, and count.
  ///   - upstreams: their authorities are read before anything changes, so that a broken file changes nothing.
  public func replace(
    responder: any RequestResponder, tls: ServerTLS?, limits: EngineLimits? = nil, upstreams: [Upstream] = []
  ) async throws(ServerTLS.Fault) {
    let old = service.withLock(\.self)
    let new = SessionService(
      responder: responder, tls: tls, limits: limits ?? old.limits, proxies: old.proxies, report: old.report,
      connections: old.connections)
    for upstream in upstreams { try new.prepare(upstream) }
    service.withLock { $0 = new }
    for loop in loops {
      await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { loop in
          loop.service = new
          loop.countConnections(in: new)
          // Those that are busy are not kept either: they were verified with the authorities of before.
          for kept in loop.keptUpstreams.all { kept.leave(loop) }
          continuation.resume()
        }
        if !isAccepted { continuation.resume() }
      }
    }
  }

  /// Stops listening, and continues to serve open connections: sessions until they end, other connections until the
  /// next answer.
  ///
  /// A connection that is not accepted yet is left to the processes that share the sockets; if there are none, it is
  /// accepted. The call may be repeated.
  public func stopListening() async {
    removeFile()
    for loop in loops {
      await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { loop in
          loop.stopListening()
          continuation.resume()
        }
        if !isAccepted { continuation.resume() }
      }
    }
  }

  /// Stops to listen, closes every session with `code`, and returns when all are gone or `timeout` has passed.
  ///
  /// It may be called again: the first call's code and timeout count.
  ///
  /// - Returns: how many sessions had to be cut off.
  @discardableResult
  public func drain(
    _ code: CloseCode = .goingAway, reason: String = "the gate is shutting down", timeout: Duration
  ) async -> Int {
    removeFile()
    return await withTaskGroup(of: Int.self) { group in
      for loop in loops {
        group.addTask {
          await withCheckedContinuation { continuation in
            let isAccepted = loop.execute { loop in
              // Those who have connected already are bidden farewell like the others, not reset.
              loop.stopListening()
              loop.startDraining(
                Drain(
                  code: code, reason: reason, deadline: loop.now + timeout.milliseconds,
                  waiting: [{ continuation.resume(returning: $0) }]))
            }
            if !isAccepted { continuation.resume(returning: 0) }
          }
        }
      }
      return await group.reduce(0, +)
    }
  }

  /// As `stop()`, and returns when the threads are at their end and every session has been told of its own.
  public func end() async {
    stop()
    for loop in loops {
      await withCheckedContinuation { continuation in loop.whenEnded { continuation.resume() } }
    }
  }

  /// Ends everything at once. The threads end a moment later, and take their listening sockets with them.
  public func stop() {
    removeFile()
    for loop in loops { loop.execute { $0.stop() } }
  }

  func removeFile() {
    let own = file.withLock { file in
      defer { file = nil }
      return file
    }
    own?.remove()
  }
}
