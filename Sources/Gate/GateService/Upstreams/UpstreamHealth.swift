internal import ByteCoding
internal import Locking
public import Transport

/// The results of the attempts to reach each route's upstream.
///
/// Each admitted request is an attempt; health checks are none. The state is that of the last requests. It lives as long
/// as the process; a reload keeps the results of routes whose upstream stays the same.
public final class UpstreamHealth: Sendable {
  private let routes = LockedValue<[String: RouteHealth]>([:])
  /// The pools of routes with several servers, by path.
  private let pools = LockedValue<[String: UpstreamPool]>([:])
  private let clock: WallClock

  init(clock: WallClock = .system) { self.clock = clock }

  /// Keeps the results of `current` and forgets those of other routes.
  func serve(_ current: [Route]) {
    pools.withLock { pools in
      let old = pools
      pools = [:]
      // A route that had several servers keeps its pool: it may have several again, and old sessions count.
      for route in current where route.servers.count > 1 || old[route.path] != nil {
        let pool = old[route.path] ?? UpstreamPool()
        pool.serve(route.servers, route.balance)
        if !route.hasHealthCheck { pool.forgetChecks() }
        pools[route.path] = pool
      }
    }
    routes.withLock { routes in
      let old = routes
      routes = Dictionary(
        uniqueKeysWithValues: current.map { route in
          let known = old[route.path].flatMap { $0.upstream == route.upstreamText ? $0 : nil }
          return (route.path, known ?? RouteHealth(upstream: route.upstreamText))
        })
    }
  }

  /// Chooses the server of `route` for a client.
  ///
  /// - Parameter client: The bytes by which clients are told apart; asked for only if several servers are told apart.
  func target(on route: Route, for client: () -> [UInt8]) -> UpstreamTarget {
    guard route.servers.count > 1, let pool = pools.withLock({ $0[route.path] }),
      let choice = UpstreamChoice(among: route.servers, from: pool, for: route.balance == .byDevice ? client() : [])
    else { return .only(route.servers[0]) }
    return .chosen(choice)
  }

  /// The servers of each route that has several, sorted by path.
  var servers: [(route: String, servers: [UpstreamServerState])] {
    pools.withLock(\.self).filter(\.value.isShared).sorted { $0.key < $1.key }.map { ($0.key, $0.value.servers) }
  }

  /// The pool of the route at `path`; `nil` unless it has several servers.
  func pool(of path: String) -> UpstreamPool? { pools.withLock { $0[path] }.flatMap { $0.isShared ? $0 : nil } }

  /// Records a health check of a server of the route at `path`.
  ///
  /// - Returns: Whether the server is unhealthy now, if that is a change.
  public func checked(_ server: Upstream, on path: String, isHealthy: Bool) -> Bool? {
    pools.withLock { $0[path] }?.checked(server.text, isHealthy: isHealthy)
  }

  /// Records the result of an attempt. Results for a route that is no longer served are dropped.
  func note(_ result: UpstreamResult, detail: String? = nil, on route: String) {
    let now = clock.now()
    routes.withLock { routes -> Void in routes[route]?.note(result, detail: detail, at: now) }
  }

  /// The state of each route's upstream, sorted by path.
  public var states: [GateStatus.UpstreamState] {
    let now = clock.now()
    return sorted.map { route, health in
      var state = GateStatus.UpstreamState(route: route, health, at: now)
      state.servers = pool(of: route)?.servers
      return state
    }
  }

  /// A check for each route. An upstream does not make the gate unready, since the gate may have other routes and a
  /// load balancer cannot repair it.
  var checks: [GateStatus.Check] {
    sorted.map { path, health in
      GateStatus.Check(
        name: "upstream \(path)", ready: true, detail: health.summary, warning: health.isFailing ? true : nil)
    }
  }

  /// The results of each route, for metrics.
  var records: [(route: String, health: RouteHealth)] { sorted.map { ($0.key, $0.value) } }

  private var sorted: [(key: String, value: RouteHealth)] {
    routes.withLock(\.self).sorted { $0.key < $1.key }
  }
}

/// The result of an attempt to reach an upstream.
enum UpstreamResult: String, Sendable, Hashable, CaseIterable {
  /// The upstream gave its 101, accepted the TCP connection, or answered an ordinary request.
  case connected
  /// The upstream answered the opening handshake with a status below 500: it is available, and refuses this client.
  case refused
  /// The upstream answered the opening handshake with a status of 500 or above.
  case serverError = "server_error"
  /// Name resolution, connection or TLS failed.
  case unreachable
  case timedOut = "timed_out"
  /// The answer violates HTTP or the WebSocket handshake.
  case misbehaved

  /// The position in `allCases`: an array costs less than a dictionary, which would hash the word.
  var index: Int {
    switch self {
    case .connected: 0
    case .refused: 1
    case .serverError: 2
    case .unreachable: 3
    case .timedOut: 4
    case .misbehaved: 5
    }
  }

  /// Whether the upstream is to blame.
  var isFailure: Bool {
    switch self {
    case .connected, .refused: false
    case .serverError, .unreachable, .timedOut, .misbehaved: true
    }
  }

  /// `nil` for a fault of the gate.
  init?(_ fault: UpstreamError) {
    switch fault {
    case .exhausted: return nil
    case .unreachable: self = .unreachable
    case .timedOut: self = .timedOut
    case .misbehaved: self = .misbehaved
    case .refused(let response): self = response.status < 500 ? .refused : .serverError
    }
  }
}

/// The results of the attempts to reach one upstream.
struct RouteHealth: Sendable, Hashable {
  struct Failure: Sendable, Hashable {
    let at: Timestamp
    let result: UpstreamResult
    /// The reason with addresses, for operators.
    let detail: String?
  }

  let upstream: String
  private var counts = [UInt64](repeating: 0, count: UpstreamResult.allCases.count)
  private(set) var lastSuccess: Timestamp?
  private(set) var lastFailure: Failure?
  private(set) var recent = RecentAttempts()

  init(upstream: String) { self.upstream = upstream }

  mutating func note(_ result: UpstreamResult, detail: String?, at now: Timestamp) {
    counts[result.index] += 1
    recent.note(isFailure: result.isFailure)
    if result.isFailure {
      lastFailure = Failure(at: now, result: result, detail: detail)
    } else if result == .connected {
      lastSuccess = now
    }
  }

  /// How often `result` occurred.
  func count(of result: UpstreamResult) -> UInt64 { counts[result.index] }

  var isTried: Bool { recent.count > 0 }

  /// Whether the last attempt failed, or at least half of the recent ones, if there are enough to judge.
  var isFailing: Bool { recent.lastFailed || recent.count >= 4 && recent.failures * 2 >= recent.count }

  /// The state without addresses, since `/readyz` needs no token.
  fileprivate var summary: String {
    guard isTried else { return "not tried yet" }
    var parts = [isFailing ? "WARNING: \(recent.failures) of the last \(recent.count) attempts failed" : "ok"]
    if let lastSuccess { parts.append("last success \(lastSuccess.wholeSecond)") }
    if let lastFailure { parts.append("last failure \(lastFailure.at.wholeSecond) (\(lastFailure.result.rawValue))") }
    return parts.joined(separator: ", ")
  }
}

/// Which of the last attempts failed.
struct RecentAttempts: Sendable, Hashable {
  static let capacity = 16

  /// One bit for each attempt, the newest lowest; set if it failed.
  private var bits: UInt16 = 0
  private(set) var count = 0

  var failures: Int { bits.nonzeroBitCount }
  var lastFailed: Bool { bits & 1 == 1 }

  mutating func note(isFailure: Bool) {
    bits = bits << 1 | (isFailure ? 1 : 0)
    count = min(count + 1, Self.capacity)
  }
}

extension GateStatus.UpstreamState {
  fileprivate init(route: String, _ health: RouteHealth, at now: Timestamp) {
    let failure = health.lastFailure
    self.init(
      route: route, upstream: health.upstream,
      condition: health.isFailing ? .failing : health.isTried ? .available : .untried,
      connected: health.count(of: .connected), refused: health.count(of: .refused),
      failed: UpstreamResult.allCases.filter(\.isFailure).reduce(0) { $0 + health.count(of: $1) },
      recentAttempts: health.recent.count, recentFailures: health.recent.failures,
      lastSuccess: health.lastSuccess.map { .init(at: $0.wholeSecond.description, $0, now) },
      lastFailure: failure.map { .init(at: $0.at.wholeSecond.description, $0.at, now) },
      lastFailureReason: failure.map { [$0.result.rawValue, $0.detail].compactMap(\.self).joined(separator: ": ") })
  }
}

extension GateStatus.Moment {
  fileprivate init(at text: String, _ instant: Timestamp, _ now: Timestamp) {
    self.init(at: text, secondsAgo: max(0, now.since(instant).components.seconds))
  }
}
