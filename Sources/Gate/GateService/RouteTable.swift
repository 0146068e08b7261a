internal import Observability
public import Transport

/// A path and the upstream for requests under it.
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
  public let upstream: Upstream
  public let forwarding: Forwarding
  /// The `aud` claim of assertions for this upstream; `nil` for the common audience (`IdentityIssuer`).
  public let audience: String?
  /// The subprotocol of a `.tcp` upstream; `nil` to choose from what the client offers.
  public let subprotocol: String?
  /// The maximum length of the head of a response of the upstream, in bytes.
  public let maxResponseHead: Int
  /// The pages of other hosts that may use the route.
  public let origins: AllowedOrigins
  /// The upstream in the notation of the configuration, for the log.
  let upstreamText: String
  /// The fields of log lines that name the route and its upstream, rendered once.
  let logFields: LogFields

  /// Creates a route for `path` and all paths below it.
  ///
  /// - Returns: `nil` unless the path begins with a slash and has no empty segment and no dot segment. A slash at the
  ///   end is dropped.
  public init?(
    path: String, upstream: Upstream, forwarding: Forwarding = .upgrades, audience: String? = nil,
    subprotocol: String? = nil, maxResponseHead: Int = 64 << 10, origins: AllowedOrigins = AllowedOrigins()
  ) {
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let named = segments.last == "" ? segments.dropLast() : segments
    guard path.hasPrefix("/"), !named.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) else { return nil }
    self.path = "/" + named.joined(separator: "/")
    self.upstream = upstream
    self.forwarding = forwarding
    self.audience = audience
    self.subprotocol = subprotocol
    self.maxResponseHead = maxResponseHead
    self.origins = origins
    upstreamText = upstream.text
    var fields = LogFields()
    fields.append("route", self.path)
    fields.append("upstream", upstreamText)
    logFields = fields
  }

  public static func == (first: Route, second: Route) -> Bool {
    first.path == second.path && first.upstream == second.upstream && first.forwarding == second.forwarding
      && first.audience == second.audience && first.subprotocol == second.subprotocol
      && first.maxResponseHead == second.maxResponseHead && first.origins == second.origins
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(path)
    hasher.combine(upstream)
  }

  /// Returns `true` if `path` equals this route's path or is below it, segment by segment.
  func covers(_ path: String) -> Bool {
    self.path == "/" || path == self.path || path.hasPrefix(self.path + "/")
  }
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
  fileprivate var text: String {
    switch self {
    case .webSocket(let host, let port): "ws://\(Self.bracketed(host)):\(port)"
    case .secureWebSocket(let host, let port, tls: _): "wss://\(Self.bracketed(host)):\(port)"
    case .unix(let path): "unix:\(path)"
    case .tcp(let host, let port): "tcp://\(Self.bracketed(host)):\(port)"
    }
  }

  private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }
}
