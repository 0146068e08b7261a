internal import Glibc
public import Transport

extension ClientEngine {
  /// Sends one request to `upstream`, on a connection of its own, and returns the answer without its body, which is not
  /// read.
  ///
  /// - Parameters:
  ///   - fields: Must contain `Host`.
  ///   - tls: For `wss://`: what `ClientTLS(for:)` has read, which takes many milliseconds.
  ///   - timeout: For everything from connecting to the end of the answer's head.
  /// - Throws: `ClientError`; `.misused` for `.tcp`, which gets no requests.
  public func ask(
    _ upstream: Upstream, _ method: String, _ target: String, fields: HeaderFields, tls context: ClientTLS?,
    within timeout: Duration
  ) async throws(ClientError) -> Response {
    let deadline = ContinuousClock.now + timeout
    let connection: ClientConnection
    switch upstream {
    case .webSocket(let host, let port):
      connection = try await connect(host: host, port: port, tls: nil, timeout: timeout)
    case .secureWebSocket(let host, let port, let tls):
      guard let context else { throw .misused("wss:// needs authorities") }
      connection = try await connect(
        host: host, port: port, tls: context, verifying: tls.serverName, timeout: timeout)
    case .unix(let path): connection = try await connect(socket: path, timeout: timeout)
    case .tcp: throw .misused("tcp:// gets no requests")
    }
    let left = deadline - .now
    guard left > .zero else { throw .timedOut }
    return try await connection.sendForHead(method, target, headers: fields, timeout: left)
  }

  private static func context(for tls: UpstreamTLS) throws(ClientError) -> ClientTLS {
    do throws(ServerTLS.SetupError) { return try ClientTLS(for: tls) } catch { throw .untrusted(error.description) }
  }

  /// Connects to `upstream` as a gate would, including the TLS handshake, and closes the connection.
  ///
  /// - Throws: `ClientError` if the upstream cannot be reached within `timeout` or does not prove its identity.
  public func tryConnecting(to upstream: Upstream, within timeout: Duration) async throws(ClientError) {
    switch upstream {
    case .webSocket(let host, let port), .tcp(let host, let port):
      _ = try await connect(host: host, port: port, tls: nil, timeout: timeout)
    case .secureWebSocket(let host, let port, let tls):
      _ = try await connect(
        host: host, port: port, tls: try Self.context(for: tls), verifying: tls.serverName, timeout: timeout)
    case .unix(let path):
      do throws(SystemCallError) {
        // The kernel answers at once: no network is involved.
        let socket = try Socket.make(for: .unix(path))
        defer { close(socket) }
        _ = try Socket.connect(socket, to: .unix(path))
      } catch {
        // Its queue is full: a server listens, and gates wait for it.
        if error.number == EAGAIN { return }
        throw .unreachable("\(path): \(error)")
      }
    }
  }
}
