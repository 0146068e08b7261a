/// The endpoint that a path names. The gate's own paths always take precedence over routes.
enum Endpoint: Sendable, Hashable {
  case challenge
  case registration
  /// Another proxy asks whether a request may pass.
  case verification
  /// An access token for a service that the gate does not relay to.
  case token
  /// The public keys with which upstreams verify identity assertions.
  case keySet
  /// Reserved for the gate and unused.
  case reserved
  case route(Route)
  case nowhere

  init(path: String, routes: RouteTable) {
    switch path {
    case "/attest/challenge": self = .challenge
    case "/attest/register": self = .registration
    // Some proxies append the path of the request that they ask about.
    case let path where path == "/attest/verify" || path.hasPrefix("/attest/verify/"): self = .verification
    case TokenEndpoint.path: self = .token
    case "/.well-known/sallyport/jwks.json": self = .keySet
    case let path where Self.isReserved(path): self = .reserved
    default: self = routes.route(for: path).map(Endpoint.route) ?? .nowhere
    }
  }

  /// The path of the route or of the gate's own endpoint; `nil` for a path that names neither.
  var pattern: String? {
    switch self {
    case .challenge: "/attest/challenge"
    case .registration: "/attest/register"
    case .verification: "/attest/verify"
    case .token: TokenEndpoint.path
    case .keySet: "/.well-known/sallyport/jwks.json"
    case .route(let route): route.path
    case .reserved, .nowhere: nil
    }
  }

  private static func isReserved(_ path: String) -> Bool {
    ["/attest", "/.well-known/sallyport"].contains { path == $0 || path.hasPrefix($0 + "/") }
  }
}
