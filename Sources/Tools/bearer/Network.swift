internal import Commands
internal import Wire
internal import Foundation
internal import HTTPClientTransport
internal import OIDCClient

/// How providers are reached.
enum Network {
  /// The time for one exchange, from the connection to the last byte of the answer.
  static let exchangeTime = Duration.seconds(30)

  /// The dependencies of a client of `provider`, with its roots and pins.
  ///
  /// - Parameter attester: What attests the client, if it authenticates by that.
  static func dependencies(
    _ provider: IdentityProvider, attester: (any ClientAttester)?, isDebugging: Bool, exchangeTime: Duration
  ) -> SignInDependencies {
    let transport = LazyTransport(
      HTTPClientTransport.Options(
        authorityFile: provider.trust.authorityFile, pins: provider.trust.pins,
        clientCertificate: certificate(of: provider), exchangeTime: exchangeTime))
    guard isDebugging else { return SignInDependencies(transport: transport, attester: attester) }
    return SignInDependencies(
      transport: LoggedTransport(transport) { line in StandardError.write("debug: \(line)\n") }, attester: attester)
  }

  /// What the client presents to `provider`.
  static func certificate(of provider: IdentityProvider) -> HTTPClientTransport.Options.Certificate? {
    provider.trust.clientCertificate.map { .init(chain: Array($0.chain.utf8), key: Array($0.key.utf8)) }
  }

  /// How `provider` is reached if a variable chooses a proxy; `nil` if there is none, or if the value is faulty, which
  /// each request reports.
  static func proxySummary(of provider: IdentityProvider) -> String? {
    let url = provider.issuer.flatMap { URL(string: $0) } ?? provider.tokenEndpoint
    guard let server = HTTPClientTransport.server(of: url) else { return nil }
    let summary = try? ProxyVariables.ofProcess.summary(for: server.scheme, host: server.host, port: server.port)
    return summary ?? nil
  }
}

/// A transport that is made for the first request. Most calls of `bearer token` send none, and are over before the threads
/// of a client would have started.
private actor LazyTransport: HTTPTransport {
  private let options: HTTPClientTransport.Options
  private var transport: HTTPClientTransport?

  init(_ options: HTTPClientTransport.Options) { self.options = options }

  private func made() -> HTTPClientTransport {
    let made = transport ?? HTTPClientTransport(options)
    transport = made
    return made
  }

  nonisolated func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    try await made().send(request)
  }
}
