/// What operators see of a server of a route.
public struct UpstreamServerState: Codable, Sendable, Hashable {
  public enum Condition: String, Codable, Sendable, Hashable, CaseIterable {
    case available
    /// It could not be connected to, and gets no session for a while.
    case resting
    /// It fails its health check, and gets no new sessions.
    case unhealthy
    /// An operator sends it no new sessions.
    case drained
    /// The only server of its route, whose last attempts failed.
    case failing
  }

  /// The path of the route; `nil` within the route's own state.
  public var route: String?
  /// The server in the notation of the configuration.
  public var upstream: String
  public var condition: Condition
  /// Its sessions and requests that are open or being opened; `nil` for the only server of a route.
  public var sessions: Int?
  /// The failed connections since the last that succeeded; for the only server of a route, of the last 16 attempts.
  public var failures: Int
}

/// The admin server's list of servers.
public struct UpstreamListing: Codable, Sendable, Hashable {
  /// Sorted by the path of the route, then in the order of the configuration.
  public var upstreams: [UpstreamServerState]
}
