/// What a path stands for. The gate's own paths always win over routes.
enum Endpoint: Sendable, Hashable {
  case challenge
  case registration
  /// Asked by another proxy whether a request may pass.
  case verification
  /// The keys by which upstreams verify identities.
  case keySet
  /// Kept for the gate, and there is nothing.
  case reserved
  case route(Route)
  case nowhere

  init(path: String, routes: RouteTable) {
    switch path {
    case "/attest/challenge": self = .challenge
    case "/attest/register": self = .registration
    // Some proxies append the path that they ask about.
    case let path where path == "/attest/verify" || path.hasPrefix("/attest/verify/"): self = .verification
    case "/.well-known/sallyport/jwks.json": self = .keySet
    case let path where Self.isReserved(path): self = .reserved
    default: self = routes.route(for: path).map(Endpoint.route) ?? .nowhere
    }
  }

  private static func isReserved(_ path: String) -> Bool {
    ["/attest", "/.well-known/sallyport"].contains { path == $0 || path.hasPrefix($0 + "/") }
  }
}
