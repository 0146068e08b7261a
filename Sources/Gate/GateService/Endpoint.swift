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
    self = Self.own(path) ?? routes.route(for: path).map(Endpoint.route) ?? .nowhere
  }

  /// Returns the endpoint of the gate itself that `path` names; `nil` for a path that is left to routes.
  private static func own(_ path: String) -> Endpoint? {
    // Almost no path passes this test.
    guard folders.contains(where: path.hasPrefix) else { return nil }
    switch path {
    case "/attest/challenge": return .challenge
    case "/attest/register": return .registration
    // Some proxies append the path of the request that they ask about.
    case let path where ForwardAuth.names(path): return .verification
    case TokenEndpoint.path: return .token
    case "/.well-known/sallyport/jwks.json": return .keySet
    default: return folders.contains { path == $0 || path.hasPrefix($0 + "/") } ? .reserved : nil
    }
  }

  /// The folders that belong to the gate.
  private static let folders = ["/attest", "/.well-known/sallyport"]

  /// The path of the route or of the gate's own endpoint; `nil` for a path that names neither.
  var pattern: String? {
    switch self {
    case .challenge: "/attest/challenge"
    case .registration: "/attest/register"
    case .verification: ForwardAuth.path
    case .token: TokenEndpoint.path
    case .keySet: "/.well-known/sallyport/jwks.json"
    case .route(let route): route.path
    case .reserved, .nowhere: nil
    }
  }
}
