internal import Glibc
internal import Locking
public import Transport

/// Limits on connections and requests. They apply before the responder decides.
public struct EngineLimits: Sendable, Hashable {
  /// The time from accepting the connection to the end of the TLS handshake.
  public var handshakeTimeout: Duration = .seconds(10)
  /// The time from the first byte of a request head to its last. On a new connection it starts
  /// with the end of the handshake.
  public var headTimeout: Duration = .seconds(10)
  /// The time from the end of the head to the end of the body.
  public var bodyTimeout: Duration = .seconds(10)
  /// How long a connection may stay open without a request. Balancers give an idle connection up after 60 seconds by
  /// default; the side that sends the requests must be the first, or a request crosses the end.
  public var keepAliveTimeout: Duration = .seconds(75)
  /// How long the responder may take to decide. Then the client gets 503, and the connection closes.
  public var decisionTimeout: Duration = .seconds(30)
  /// How long a peer may take to answer a Close frame or to close its socket.
  public var closeTimeout: Duration = .seconds(5)
  /// The same for a session that the gate closes because its key was revoked (3003) or its maximum age is reached;
  /// capped by `closeTimeout`. Afterwards both sockets are closed, even inside a frame.
  ///
  /// A change in the store is noticed within a second. With the resolution of the timers, such
  /// a session ends within 2 s.
  public var lostRightTimeout: Duration = .milliseconds(700)
  /// The maximum length of the head of a request in bytes. One field is allowed for each 256 bytes, and at least 100.
  public var maxHead = 16 << 10
  /// The maximum size of a request body in bytes.
  public var maxBody = 64 << 10
  /// The maximum number of requests on one connection.
  public var maxRequests = 1000
  /// The maximum number of simultaneous connections from one address; `nil` for no limit. Connections over the
  /// limit are closed before TLS.
  public var connectionsPerAddress: Int?
  /// The maximum number of simultaneous connections of each loop, at least 1; `nil` for no limit. A further one takes the
  /// place of the one that has waited longest for its client; if each has a request in work, as many again are accepted.
  /// For listeners of operators and probes, which neither idle clients nor busy ones must lock out.
  public var connectionsPerLoop: Int?

  /// Clients and upstreams get no descriptor of this number or above. The rest of the process's descriptors is for
  /// listeners of operators and probes, the store, and files.
  public var descriptorCeiling: Int32 = .max

  public init() {}
}

/// An event that concerns the operator and belongs to no request.
public enum EngineEvent: Sendable, Hashable {
  /// A connection is ready for requests. The duration runs from accepting the connection.
  case handshakeCompleted(Duration)
  /// A TLS handshake failed. `commonName` is the common name in a rejected client certificate: ASCII, other
  /// characters escaped, at most 64 characters of the name.
  case handshakeFailed(address: SocketAddress, reason: String, commonName: String? = nil)
  /// The client closed the connection before it sent a byte, as health checks of load balancers do.
  case connectionUnused(address: SocketAddress)
  /// A connection got the certificate of a TLS-ALPN-01 challenge, and was closed.
  case challengeAnswered(address: SocketAddress)
  /// The process has no descriptors or no memory for another connection. The listener pauses
  /// for a moment and continues. Connections wait in the kernel's queue meanwhile.
  case acceptPaused(reason: String)
  /// A connection was closed before TLS and before any request.
  case connectionRefused(ConnectionRefusal, address: SocketAddress, detail: String? = nil)
}

/// Why a connection was refused.
public enum ConnectionRefusal: String, Sendable, Hashable, CaseIterable {
  /// The address has reached its connection limit.
  case tooManyOfAddress = "per_ip"
  /// A PROXY header is required, and the connection does not come from a trusted proxy.
  case untrustedProxy = "proxy_untrusted"
  /// The connection does not begin with a PROXY header of an allowed version.
  case malformedProxyHeader = "proxy_header"
  /// The PROXY header did not arrive in time.
  case slowProxyHeader = "proxy_time"
  /// The client sent an HTTP request without TLS. It gets an answer of one sentence.
  case plainHTTP = "plain_http"
}

/// The configuration and state that all loops of an engine share.
final class SessionService: Sendable {
  let responder: any RequestResponder
  /// Of `responder`.
  let unreadPaths: StaticString?
  let ownFields: FieldNameSet
  /// `nil` for a listener without TLS.
  let tls: ServerTLS?
  let limits: EngineLimits
  /// The trusted proxies; `nil` if clients connect directly.
  let proxies: ProxyProtocol?
  let report: @Sendable (EngineEvent) -> Void
  /// `nil` admits every connection.
  let admits: (@Sendable (SocketAddress) -> Bool)?
  let upstreamTLS = UpstreamTLSCache()
  /// Stays the same when the configuration is replaced.
  let connections: ConnectionCounts

  init(
    responder: any RequestResponder, tls: ServerTLS?, limits: EngineLimits, proxies: ProxyProtocol?,
    report: @escaping @Sendable (EngineEvent) -> Void, admits: (@Sendable (SocketAddress) -> Bool)? = nil,
    connections: ConnectionCounts = ConnectionCounts()
  ) {
    self.admits = admits
    self.proxies = proxies
    self.connections = connections
    self.responder = responder
    unreadPaths = responder.unreadPaths
    ownFields = responder.ownFields
    self.tls = tls
    self.limits = limits
    self.report = report
  }

  func prepare(_ upstream: Upstream) throws(ServerTLS.SetupError) {
    if case .secureWebSocket(_, _, let tls) = upstream { _ = try upstreamTLS.context(for: tls) }
  }
}

/// A server that listens at one address and runs event loops, each on its own thread.
///
/// It terminates TLS, reads HTTP/1.1 request heads, asks the responder, and relays admitted requests. Every
/// connection belongs to one loop for its whole life; there is no thread per connection.
public final class Engine: Sendable {
  /// Why an engine did not start.
  public struct StartError: Error, Sendable, CustomStringConvertible {
    public let description: String
    /// The system's error number; 0 if there is none.
    let number: Int32
    /// Whether another process already listens at the address.
    public var isAddressInUse: Bool { number == EADDRINUSE }
    /// Whether this user may not use the port or the folder of the socket.
    public var isForbidden: Bool { number == EACCES || number == EPERM }
  }

  /// The address at which the engine listens. Its port is the one that the kernel chose if port 0 was requested.
  public let address: SocketAddress

  let loops: [EventLoop]
  private let service: LockedValue<SessionService>
  /// The file of a Unix socket; `nil` once the engine stops listening or shares the socket.
  let file: LockedValue<UnixSocketFile?>

  /// Starts listening and serving.
  ///
  /// - Parameters:
  ///   - address: Where to listen. `::` also accepts IPv4; on a machine without IPv6 it means `0.0.0.0`. A Unix
  ///     socket is accessible to this user only (mode 0600) and replaces a stale socket file; the engine
  ///     removes its file when it stops.
  ///   - loops: The number of threads that serve, at least 1; one per usable processor is best. A Unix socket uses one.
  ///   - tls: `nil` serves without TLS, for tools on loopback.
  ///   - proxies: If set, every connection must come from one of these proxies and begin with a
  ///     PROXY header, before TLS.
  ///   - accepts: `false` leaves new connections in the queue until `startAccepting()`.
  ///   - admits: Decides whether a connection from an address is served, once for each connection and before it is
  ///     counted. Another connection is closed without an answer. Called on the loops; must not block.
  ///   - report: Receives the events that belong to no request. Called on the loops; must not block.
  /// - Throws: `StartError` if the socket or the loops cannot be created.
  public convenience init(
    listeningAt address: SocketAddress, loops count: Int, tls: ServerTLS?, responder: any RequestResponder,
    limits: EngineLimits = EngineLimits(), proxies: ProxyProtocol? = nil, accepts: Bool = true,
    admits: (@Sendable (SocketAddress) -> Bool)? = nil,
    report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
  ) throws(StartError) {
    let sockets: ListeningSockets
    do throws(SystemCallError) {
      sockets = try Self.open(address, count: max(1, count))
    } catch {
      throw StartError(description: "\(address): \(error)", number: error.number)
    }
    let service = SessionService(
      responder: responder, tls: tls, limits: limits, proxies: proxies, report: report, admits: admits)
    try self.init(sockets, service, accepts: accepts)
  }

  /// Starts serving on sockets that already listen: from systemd, or from the old process of a graceful upgrade.
  ///
  /// The engine takes ownership of the descriptors. Other processes may hold the same sockets: when the engine stops
  /// listening, it leaves connections that are not yet accepted to them.
  ///
  /// - Parameter ownsFile: Whether the engine removes the file of a Unix socket when it stops.
  /// - Throws: `StartError` if a descriptor is not a listening stream socket, or the loops cannot be created.
  public convenience init(
    inheriting descriptors: [Int32], ownsFile: Bool = false, loops count: Int, tls: ServerTLS?,
    responder: any RequestResponder, limits: EngineLimits = EngineLimits(), proxies: ProxyProtocol? = nil,
    accepts: Bool = true, report: @escaping @Sendable (EngineEvent) -> Void = { _ in }
  ) throws(StartError) {
    let sockets: ListeningSockets
    do throws(SystemCallError) {
      sockets = try ListeningSockets(inheriting: descriptors, ownsFile: ownsFile, loops: max(1, count))
    } catch {
      throw StartError(description: "inherited socket: \(error)", number: 0)
    }
    let service = SessionService(
      responder: responder, tls: tls, limits: limits, proxies: proxies, report: report)
    try self.init(sockets, service, accepts: accepts)
  }

  private init(_ sockets: ListeningSockets, _ service: SessionService, accepts: Bool) throws(StartError) {
    _ = Self.ignoresBrokenPipes
    self.service = LockedValue(service)
    file = LockedValue(sockets.file)
    address = sockets.address
    do throws(SystemCallError) {
      loops = try Self.startLoops(sockets.each.count, service: service)
    } catch {
      sockets.close()
      throw StartError(description: "\(sockets.address): \(error)", number: 0)
    }
    for (loop, descriptors) in zip(loops, sockets.each) {
      loop.execute { loop in
        loop.listeners = descriptors.map { Listener(fd: $0, isShared: sockets.isShared) }
      }
    }
    if accepts { startAccepting() }
  }

  /// Accepts the connections in the queue and new ones, after an `init` with `accepts: false`. Call it once.
  public func startAccepting() {
    for loop in loops {
      loop.execute { loop in
        for listener in loop.listeners { listener.start(in: loop) }
      }
    }
  }

  // Writing to a socket whose peer has closed must return an error and not kill the process.
  private static let ignoresBrokenPipes: Void = { signal(SIGPIPE, SIG_IGN) }()

  /// Starts `count` loops; stops the ones that run if a later one cannot start.
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

  /// Reads the authorities that verify `upstream`, so that a broken file is found at start.
  ///
  /// - Throws: `ServerTLS.SetupError` if the authorities cannot be read.
  public func prepare(_ upstream: Upstream) throws(ServerTLS.SetupError) {
    try service.withLock(\.self).prepare(upstream)
  }

  /// Replaces the configuration: `responder` decides from now on, and new connections use `tls`.
  ///
  /// When this returns, every loop uses the new configuration. If two calls overlap, either may be the last one on a
  /// loop, so callers must serialize them.
  ///
  /// - Open sessions continue unchanged. A request that is being decided gets the response of its responder. The next
  ///   request of a connection goes to the new responder.
  /// - The new responder sees a client certificate only if all authorities that verified it are still configured. A
  ///   new server certificate has no effect on open connections.
  /// - Files of authorities are read again.
  ///
  /// - Parameters:
  ///   - limits: The limits for new connections; `nil` keeps the current ones. Open connections
  ///     stay open and are counted.
  ///   - upstreams: The upstreams whose authorities are read before anything changes, so that a
  ///     broken file changes nothing.
  /// - Throws: `ServerTLS.SetupError` if the authorities of an upstream cannot be read. Nothing has changed then.
  public func replace(
    responder: any RequestResponder, tls: ServerTLS?, limits: EngineLimits? = nil, upstreams: [Upstream] = []
  ) async throws(ServerTLS.SetupError) {
    let old = service.withLock(\.self)
    let new = SessionService(
      responder: responder, tls: tls, limits: limits ?? old.limits, proxies: old.proxies, report: old.report,
      admits: old.admits, connections: old.connections)
    for upstream in upstreams { try new.prepare(upstream) }
    service.withLock { $0 = new }
    for loop in loops {
      await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { loop in
          loop.service = new
          loop.countConnections(in: new)
          // Upstream connections in use are not pooled later either: the previous authorities verified them.
          for kept in loop.keptUpstreams.all { kept.leave(loop) }
          continuation.resume()
        }
        if !isAccepted { continuation.resume() }
      }
    }
  }

  /// Stops listening and continues to serve open connections: sessions until they end, other connections
  /// until their next response.
  ///
  /// Connections that are not yet accepted are left to other holders of the sockets; if there are none, they are
  /// accepted. May be called again.
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

  /// Stops listening, closes every session with `code`, and returns when all are closed or `timeout` has passed.
  ///
  /// If it is called again, the code and timeout of the first call apply.
  ///
  /// - Returns: The number of connections that are still open.
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
              // Connections in the queue get a lingering close like the others, not a reset.
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

  /// Stops like `stop()`, and returns when the threads have finished and every session has received its end callback.
  public func end() async {
    stop()
    for loop in loops {
      await withCheckedContinuation { continuation in loop.whenEnded { continuation.resume() } }
    }
  }

  /// Closes everything at once. The threads finish a moment later and close their listening sockets.
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
