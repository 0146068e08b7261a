internal import Glibc
public import Transport

extension ClientEngine {
  /// Connects to `upstream` as a gate would, including the TLS handshake, and closes the connection.
  ///
  /// - Throws: `ClientError` if the upstream cannot be reached within `timeout` or does not prove its identity.
  public func tryConnecting(to upstream: Upstream, within timeout: Duration) async throws(ClientError) {
    switch upstream {
    case .webSocket(let host, let port), .tcp(let host, let port):
      _ = try await connect(host: host, port: port, tls: nil, timeout: timeout)
    case .secureWebSocket(let host, let port, let tls):
      let context: ClientTLS
      do throws(ServerTLS.SetupError) {
        context = try ClientTLS(for: tls)
      } catch {
        throw .untrusted(error.description)
      }
      _ = try await connect(host: host, port: port, tls: context, verifying: tls.serverName, timeout: timeout)
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
