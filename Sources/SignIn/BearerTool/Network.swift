internal import CommandSupport
internal import HTTPClientTransport
internal import HTTPExchange
internal import OIDCClient

/// How providers are reached.
enum Network {
  /// The dependencies of a client of `provider`, with its roots and pins.
  static func dependencies(_ provider: IdentityProvider, isDebugging: Bool) -> SignInDependencies {
    let transport = LazyTransport(
      HTTPClientTransport.Options(authorityFile: provider.trust.authorityFile, pins: provider.trust.pins))
    guard isDebugging else { return SignInDependencies(transport: transport) }
    return SignInDependencies(
      transport: LoggedTransport(transport) { line in StandardError.write("debug: \(line)\n") })
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
