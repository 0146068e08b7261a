internal import Glibc
public import Transport

/// A loop that opens connections to gates and other servers, for tools and tests: HTTP/1.1 requests, and WebSockets on
/// the same connection, as real clients do.
public final class ClientEngine: Sendable {
  let loop: EventLoop

  /// - Throws: `ClientFault.unreachable` when the system has no descriptors or threads left.
  public init() throws(ClientFault) {
    do throws(SystemCallError) {
      let loop = try EventLoop(service: nil, resolver: Resolver())
      try Thread.start { loop.run() }
      self.loop = loop
    } catch {
      throw .unreachable(error.description)
    }
    signal(SIGPIPE, SIG_IGN)
  }

  // Every connection keeps its engine alive, so no caller waits for the loop here.
  deinit { loop.execute { $0.stop() } }

  /// Opens a connection, TLS handshake included.
  ///
  /// - Parameters:
  ///   - tls: the trusted authorities and the client's identity; `nil` connects without TLS.
  ///   - name: the name that the server's certificate must have; `host` unless given.
  public func connect(
    host: String, port: UInt16, tls: ClientTLS?, verifying name: String? = nil, timeout: Duration = .seconds(10)
  ) async throws(ClientFault) -> ClientConnection {
    let channel = ClientChannel(host: host, port: port, tls: tls, name: name ?? host)
    let connection = ClientConnection(channel: ClientChannelReference(channel), engine: self)
    try await connection.perform { channel, loop, done in
      loop.insert(channel)
      channel.begin(.connection(done), timeout: timeout, in: loop)
      channel.resolve(in: loop)
    }
    return connection
  }

  /// Opens a connection, without TLS, to the Unix socket at `path`.
  public func connect(
    socket path: String, timeout: Duration = .seconds(10)
  ) async throws(ClientFault) -> ClientConnection {
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

/// Why a client's wish was not fulfilled. The texts are for people.
public enum ClientFault: Error, Sendable, Hashable {
  /// Name resolution or connection failed.
  case unreachable(String)
  /// The TLS handshake failed: the server's certificate is not trusted, or the server refused the client.
  case untrusted(String)
  case timedOut
  /// The connection ended before its time.
  case lost(String)
  /// The server broke its protocol.
  case malformed(String)
  /// A well-formed answer other than 101 to an opening handshake.
  case refused(Response)
  /// The connection is busy with another request, closed, or a WebSocket by now: the caller's mistake.
  case misused(String)
}

extension ClientFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreachable(let reason), .untrusted(let reason), .lost(let reason), .malformed(let reason),
      .misused(let reason):
      reason
    case .timedOut: "no answer in time"
    case .refused(let response): "refused with status \(response.status)"
    }
  }
}
