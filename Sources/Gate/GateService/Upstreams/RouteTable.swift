internal import Observability
public import Transport

/// A path and the servers for requests under it.
///
/// A class, so that each of many sessions keeps one reference to it.
public final class Route: Sendable, Hashable {
  /// The kinds of requests that reach the upstream.
  public enum Forwarding: String, Sendable, Hashable, CaseIterable {
    /// Only WebSocket upgrades.
    case upgrades
    /// Ordinary requests too, each with its own assertion.
    case all
  }

  /// The path: `/`, or segments that each begin with a slash, without a slash at the end: `/game/eu`.
  public let path: String
  /// The servers of the upstream, at least one, all different.
  let servers: [UpstreamServer]
  /// How one of several servers is chosen.
  let balance: UpstreamPool.Balance
  public let forwarding: Forwarding
  /// The `aud` claim of assertions for this upstream; `nil` for the common audience (`IdentityIssuer`).
  public let audience: String?
  /// The subprotocol of a `.tcp` upstream; `nil` to choose from what the client offers.
  public let subprotocol: String?
  /// The maximum length of the target and the fields of a request, in bytes; `nil` for that of the listener.
  let maxHead: Int?
  /// Whether its servers are asked for their health.
  let hasHealthCheck: Bool
  /// The maximum length of the head of a response of the upstream, in bytes.
  public let maxResponseHead: Int
  let rewrite: RequestRewrite
  /// The pages of other hosts that may use the route.
  public let origins: AllowedOrigins
  /// The places besides the header fields where clients may put an assertion.
  let carriers: Set<AssertionCarrier>

  /// Creates a route for `path` and all paths below it.
  ///
  /// - Parameters:
  ///   - upstreams: One or several servers that serve the same.
  ///   - isByDevice: Whether the sessions of a device go to the same one of several servers.
  /// - Returns: `nil` unless the path begins with a slash and has no empty segment and no dot segment, and there is a
  ///   server and none twice. A slash at the end of the path is dropped.
  public init?(
    path: String, upstreams: [Upstream], isByDevice: Bool = false, rewrite: RequestRewrite = RequestRewrite(),
    forwarding: Forwarding = .upgrades, audience: String? = nil, subprotocol: String? = nil,
    hasHealthCheck: Bool = false, maxHead: Int? = nil, maxResponseHead: Int = 64 << 10,
    origins: AllowedOrigins = AllowedOrigins(),
    carriers: Set<AssertionCarrier> = []
  ) {
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let named = segments.last == "" ? segments.dropLast() : segments
    guard path.hasPrefix("/"), !named.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }),
      !upstreams.isEmpty, Set(upstreams).count == upstreams.count
    else { return nil }
    let name = "/" + named.joined(separator: "/")
    self.path = name
    servers = upstreams.map { UpstreamServer($0, of: name) }
    balance = isByDevice ? .byDevice : .leastSessions
    self.forwarding = forwarding
    self.audience = audience
    self.subprotocol = subprotocol
    self.maxHead = maxHead
    self.hasHealthCheck = hasHealthCheck
    self.maxResponseHead = maxResponseHead
    self.origins = origins
    self.rewrite = rewrite
    self.carriers = carriers
  }

  /// Creates a route with one server.
  public convenience init?(
    path: String, upstream: Upstream, rewrite: RequestRewrite = RequestRewrite(), forwarding: Forwarding = .upgrades,
    audience: String? = nil, subprotocol: String? = nil, maxResponseHead: Int = 64 << 10,
    origins: AllowedOrigins = AllowedOrigins(), carriers: Set<AssertionCarrier> = []
  ) {
    self.init(
      path: path, upstreams: [upstream], rewrite: rewrite, forwarding: forwarding, audience: audience,
      subprotocol: subprotocol, maxResponseHead: maxResponseHead, origins: origins, carriers: carriers)
  }

  /// The servers in the notation of the configuration.
  var upstreamText: String { servers.map(\.text).joined(separator: ", ") }

  public static func == (first: Route, second: Route) -> Bool {
    first.path == second.path && first.servers == second.servers && first.balance == second.balance
      && first.forwarding == second.forwarding && first.audience == second.audience
      && first.subprotocol == second.subprotocol
      && first.maxHead == second.maxHead && first.hasHealthCheck == second.hasHealthCheck
      && first.maxResponseHead == second.maxResponseHead && first.origins == second.origins
      && first.rewrite == second.rewrite && first.carriers == second.carriers
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(servers)
  }

  /// Returns `true` if `path` equals this route's path or is below it, segment by segment.
  func covers(_ path: String) -> Bool {
    self.path == "/" || path == self.path || path.hasPrefix(self.path + "/")
  }
}

/// One of the servers of a route.
///
/// A class, so that sessions and pools refer to it.
final class UpstreamServer: Sendable, Hashable {
  let upstream: Upstream
  /// The server in the notation of the configuration.
  let text: String
  /// The fields of log lines that name the route and the server, rendered once.
  let logFields: LogFields

  init(_ upstream: Upstream, of route: String) {
    self.upstream = upstream
    text = upstream.text
    var fields = LogFields()
    fields.append("route", route)
    fields.append("upstream", text)
    logFields = fields
  }

  static func == (first: UpstreamServer, second: UpstreamServer) -> Bool {
    first === second || first.upstream == second.upstream
  }

  func hash(into hasher: inout Hasher) { hasher.combine(upstream) }
}

/// The routes of a configuration.
public struct RouteTable: Sendable, Hashable {
  /// Sorted by the length of the path, the longest first.
  let routes: [Route]

  /// Returns `nil` if two routes have the same path.
  public init?(_ routes: [Route]) {
    guard Set(routes.map(\.path)).count == routes.count else { return nil }
    self.routes = routes.sorted { $0.path.utf8.count > $1.path.utf8.count }
  }

  /// Returns the route with the longest path that covers `path`, which must be in the engine's normal form.
  func route(for path: String) -> Route? { routes.first { $0.covers(path) } }
}

extension Upstream {
  /// The server in the notation of the configuration.
  public var text: String {
    switch self {
    case .webSocket(let host, let port): "ws://\(Self.bracketed(host)):\(port)"
    case .secureWebSocket(let host, let port, tls: _): "wss://\(Self.bracketed(host)):\(port)"
    case .unix(let path): "unix:\(path)"
    case .tcp(let host, let port): "tcp://\(Self.bracketed(host)):\(port)"
    }
  }

  private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}
