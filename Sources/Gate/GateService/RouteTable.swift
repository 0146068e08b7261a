public import Transport

/// Where upgrades under a path go.
public struct Route: Sendable, Hashable {
  /// What goes to the upstream.
  public enum Forwarding: String, Sendable, Hashable, CaseIterable {
    /// WebSockets alone.
    case upgrades
    /// Ordinary requests too, each with an assertion of its own.
    case all
  }

  /// `/`, or segments with a slash before each and none behind: `/game/eu`.
  public let path: String
  public let upstream: Upstream
  public let forwarding: Forwarding
  /// `aud` of the assertions that the upstream gets; `nil` for the audience of all routes (`IdentityIssuer`).
  public let audience: String?
  /// The upstream as a configuration writes it, for the log.
  let upstreamText: String

  /// A route for `path` and whatever is below it. `nil` unless the path begins with a slash and is in normal form: a
  /// slash at its end is dropped, an empty or dot segment has no meaning.
  public init?(path: String, upstream: Upstream, forwarding: Forwarding = .upgrades, audience: String? = nil) {
    let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let named = segments.last == "" ? segments.dropLast() : segments
    guard path.hasPrefix("/"), !named.contains(where: { $0.isEmpty || $0 == "." || $0 == ".." }) else { return nil }
    self.path = "/" + named.joined(separator: "/")
    self.upstream = upstream
    self.forwarding = forwarding
    self.audience = audience
    upstreamText = upstream.text
  }

  /// Whether `path` is this route's or below it, segment by segment.
  func covers(_ path: String) -> Bool {
    self.path == "/" || path == self.path || path.hasPrefix(self.path + "/")
  }
}

/// The routes of a configuration.
public struct RouteTable: Sendable, Hashable {
  /// The longest path first.
  private let routes: [Route]

  /// `nil` if two routes have the same path.
  public init?(_ routes: [Route]) {
    guard Set(routes.map(\.path)).count == routes.count else { return nil }
    self.routes = routes.sorted { $0.path.utf8.count > $1.path.utf8.count }
  }

  /// The route with the longest path that covers `path`, which is in the engine's normal form.
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
