internal import AsyncHTTPClient
internal import Wire
internal import Locking
internal import NIOCore
internal import NIOSSL

/// Clients that speak HTTP/2 through the tunnel of a proxy, one for each proxy and server.
///
/// A client of its own for each server knows the name that the certificate must have: without that check, a certificate
/// for the address of the proxy would do.
final class HTTP2Tunnels: Sendable {
  private struct Place: Hashable {
    let proxy: ForwardProxy
    let host: String
  }

  /// Apple and Google have two servers each.
  private static let most = 16

  private let configuration: HTTPClient.Configuration
  private let pins: Set<[UInt8]>
  private let clients = LockedValue<[Place: HTTPClient]>([:])

  /// - Parameter configuration: That of clients without a proxy.
  init(_ configuration: HTTPClient.Configuration, pins: Set<[UInt8]>) {
    self.configuration = configuration
    self.pins = pins
  }

  deinit { for client in clients.withLock({ $0.values }) { client.shutdown { _ in } } }

  /// Returns the client for a server.
  ///
  /// - Throws: `.unreachable` for a proxy that is itself reached by TLS, which the client library cannot do, for a server
  ///   without a name, and for more servers than any use of this library has.
  func client(for host: String, through proxy: ForwardProxy) throws(TransportError) -> HTTPClient {
    guard proxy.scheme == .http else {
      throw .unreachable("HTTP/2 through the proxy \(proxy) is not possible: name a proxy without TLS")
    }
    if HTTPClientTransport.isAddress(host) { throw HTTPClientTransport.unverifiable(host, through: proxy) }
    let place = Place(proxy: proxy, host: host)
    let found = clients.withLock { clients -> HTTPClient? in
      if let client = clients[place] { return client }
      guard clients.count < Self.most else { return nil }
      let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: tunnel(to: host, through: proxy))
      clients[place] = client
      return client
    }
    guard let found else { throw .unreachable("too many servers through the proxy \(proxy)") }
    return found
  }

  /// Translates an error of the client library about the tunnel, before which no request is written; `nil` for any other
  /// error.
  static func refusal(_ error: any Error, by proxy: ForwardProxy) -> TransportError? {
    guard let error = error as? HTTPClientError else { return nil }
    return switch error {
    case .proxyAuthenticationRequired:
      .unreachable("\(ProxyTunnelError(proxy: proxy, fault: .refused(status: 407)))")
    // The library does not report which status it was.
    case .invalidProxyResponse:
      .unreachable(
        "the proxy \(proxy) refused CONNECT: allow the host and port at the proxy, or add the host to NO_PROXY")
    case .httpProxyHandshakeTimeout: .unreachable("the proxy \(proxy) did not answer CONNECT within the time allowed")
    default: nil
    }
  }

  private func tunnel(to host: String, through proxy: ForwardProxy) -> HTTPClient.Configuration {
    var configuration = configuration
    let authorization = proxy.authorization.flatMap { field -> HTTPClient.Authorization? in
      guard field.hasPrefix("Basic ") else { return nil }
      return .basic(credentials: String(field.dropFirst(6)))
    }
    configuration.proxy = .server(host: proxy.host, port: Int(proxy.port), authorization: authorization)
    configuration.checkConnections { [pins] channel in
      channel.pipeline.handler(type: NIOSSLHandler.self).flatMapThrowing { handler in
        try handler.requireName(host)
        if !pins.isEmpty { try handler.requirePin(among: pins) }
      }
    }
    return configuration
  }
}
