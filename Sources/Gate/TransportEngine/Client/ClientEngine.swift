public import Wire
internal import Glibc
public import Transport

/// A loop that opens connections to gates and other servers, for tools and tests: HTTP/1.1 requests and WebSockets.
public final class ClientEngine: Sendable {
  let loop: EventLoop

  /// Starts the loop on its own thread.
  ///
  /// - Throws: `ClientError.unreachable` if the system has no descriptors or threads left.
  public init() throws(ClientError) {
    do throws(SystemCallError) {
      let loop = try EventLoop(service: nil, resolver: Resolver())
      try Thread.start { loop.run() }
      self.loop = loop
    } catch {
      throw .unreachable(error.description)
    }
    signal(SIGPIPE, SIG_IGN)
  }

  // Every connection retains its engine, so no operation waits for the loop now.
  deinit { loop.execute { $0.stop() } }

  /// Opens a connection, including the TLS handshake.
  ///
  /// - Parameters:
  ///   - tls: The trusted authorities and the client certificate; `nil` connects without TLS.
  ///   - name: The name that the server's certificate must prove; `nil` for `host`.
  ///   - proxy: Resolves `host` and opens a tunnel to it; `nil` connects directly. A proxy that needs TLS is refused.
  ///   - source: The IPv4 address of this machine, 4 bytes, from which to connect; `nil` for the system's choice. Servers
  ///     at IPv6 addresses are then not reached.
  ///   - timeout: The time for everything: connection, tunnel and handshake.
  /// - Throws: `ClientError.unreachable`, `.untrusted` or `.timedOut`. A proxy that opens no tunnel is `.unreachable`.
  public func connect(
    host: String, port: UInt16, tls: ClientTLS?, verifying name: String? = nil, through proxy: ForwardProxy? = nil,
    from source: [UInt8]? = nil, timeout: Duration = .seconds(10)
  ) async throws(ClientError) -> ClientConnection {
    var tunnel: ProxyTunnel?
    if let proxy {
      do throws(ProxyTunnelError) {
        guard proxy.scheme == .http else { throw ProxyTunnelError(proxy: proxy, fault: .secureProxy) }
        tunnel = try ProxyTunnel(to: host, port: port, through: proxy)
      } catch {
        throw .unreachable(error.description)
      }
    }
    let channel = ClientChannel(
      host: proxy?.host ?? host, port: proxy?.port ?? port, tls: tls, name: name ?? host, tunnel: tunnel,
      source: source)
    let connection = ClientConnection(channel: ClientChannelReference(channel), engine: self)
    try await connection.open(timeout: timeout)
    return connection
  }

  /// Opens a connection to a proxy for requests without TLS, whose targets are whole URLs (RFC 9112 section 3.2.2).
  ///
  /// - Throws: `ClientError.unreachable`, also for a proxy that needs TLS, or `.timedOut`.
  public func connect(
    toProxy proxy: ForwardProxy, timeout: Duration = .seconds(10)
  ) async throws(ClientError) -> ClientConnection {
    guard proxy.scheme == .http else {
      throw .unreachable(ProxyTunnelError(proxy: proxy, fault: .secureProxy).description)
    }
    let channel = ClientChannel(host: proxy.host, port: proxy.port, tls: nil, name: proxy.host)
    let connection = ClientConnection(channel: ClientChannelReference(channel), engine: self, isToProxy: true)
    do throws(ClientError) {
      try await connection.open(timeout: timeout)
    } catch {
      throw error == .timedOut ? error : .unreachable("the proxy \(proxy): \(error)")
    }
    return connection
  }

  /// Opens a connection without TLS to the Unix socket at `path`.
  ///
  /// - Throws: `ClientError.unreachable` or `.timedOut`.
  public func connect(
    socket path: String, timeout: Duration = .seconds(10)
  ) async throws(ClientError) -> ClientConnection {
    let channel = ClientChannel(host: path, port: 0, tls: nil, name: path)
    let connection = ClientConnection(channel: ClientChannelReference(channel), engine: self)
    try await connection.perform { channel, loop, done in
      loop.insert(channel)
      channel.begin(.connection(done), timeout: timeout, in: loop)
      channel.connect(to: .unix(path), in: loop)
    }
    return connection
  }
}

/// Why a client operation failed. The texts are for people.
public enum ClientError: Error, Sendable, Hashable {
  /// Name resolution or connection failed.
  case unreachable(String)
  /// The TLS handshake failed: the server did not prove its identity, or it rejected the client.
  case untrusted(String)
  /// The operation took longer than its timeout.
  case timedOut
  /// The connection closed before the operation was complete.
  case lost(String)
  /// The server violated the protocol.
  case malformed(String)
  /// The body of the response is longer than the caller accepts.
  case tooLong(limit: Int)
  /// A well-formed response other than 101 to an opening handshake.
  case refused(Response)
  /// The caller made a mistake: the connection is busy, closed, or already a WebSocket, or the request is invalid.
  case misused(String)
}

extension ClientError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreachable(let reason), .untrusted(let reason), .lost(let reason), .malformed(let reason),
      .misused(let reason):
      reason
    case .timedOut: "timed out"
    case .tooLong(let limit): "the response is longer than \(limit) bytes"
    case .refused(let response): "refused with status \(response.status)"
    }
  }
}
