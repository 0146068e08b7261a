internal import Locking

/// Where one request goes: to the only server of its route, or to a chosen one.
enum UpstreamTarget: Sendable {
  case only(UpstreamServer)
  case chosen(UpstreamChoice)

  var server: UpstreamServer {
    switch self {
    case .only(let server): server
    case .chosen(let choice): choice.server
    }
  }

  /// Whether another server can be tried if this one cannot be connected to.
  var hasAlternative: Bool { choice?.hasAlternative ?? false }

  /// Records that a connection to the server was made.
  func connected() { choice?.connected() }

  /// Records that no connection could be made, and returns the server to try instead, if another may be tried.
  func next(mayTryAnother: Bool) -> UpstreamServer? { choice?.next(mayTryAnother: mayTryAnother) }

  /// Ends the use of the server.
  func end() { choice?.end() }

  private var choice: UpstreamChoice? { if case .chosen(let choice) = self { choice } else { nil } }
}

/// The server of a route that one request goes to, among those of the request's own configuration. It counts as used from
/// its choice until `end`.
final class UpstreamChoice: Sendable {
  private struct State {
    var use: UpstreamPool.Use
    var tried: [UpstreamServer] = []
    /// Whether a connection to the server was made or has failed.
    var isDecided = false
    var isOver = false
  }

  private let pool: UpstreamPool
  private let servers: [UpstreamServer]
  private let client: [UInt8]
  private let state: LockedValue<State>

  /// - Parameter servers: Those of the request's route.
  /// - Returns: `nil` if the pool, of another configuration, has none of them.
  init?(among servers: [UpstreamServer], from pool: UpstreamPool, for client: [UInt8]) {
    guard let use = pool.choose(among: servers, for: client) else { return nil }
    self.pool = pool
    self.servers = servers
    self.client = client
    state = LockedValue(State(use: use))
  }

  deinit { end() }

  var server: UpstreamServer { state.withLock(\.use.server) }

  /// Whether there is a server that was not tried.
  var hasAlternative: Bool { state.withLock { $0.tried.count } + 1 < servers.count }

  /// Records that a connection to the server was made.
  func connected() {
    let use: UpstreamPool.Use? = state.withLock { state in
      guard !state.isDecided, !state.isOver else { return nil }
      state.isDecided = true
      return state.use
    }
    if let use { pool.connected(use) }
  }

  /// Records that no connection to the server could be made, and chooses another if one may be tried.
  ///
  /// - Returns: `nil` if all have been tried.
  func next(mayTryAnother: Bool) -> UpstreamServer? {
    let failed: UpstreamPool.Use? = state.withLock { state in
      guard !state.isOver else { return nil }
      state.tried.append(state.use.server)
      state.isDecided = true
      return state.use
    }
    guard let failed else { return nil }
    pool.failed(failed)
    let left = state.withLock(\.tried)
    guard mayTryAnother, let next = pool.choose(among: servers.filter { !left.contains($0) }, for: client) else {
      return nil
    }
    pool.released(failed, isUndecided: false)
    state.withLock { ($0.use, $0.isDecided) = (next, false) }
    return next.server
  }

  /// Ends the use of the server. Later calls do nothing.
  func end() {
    let last: (use: UpstreamPool.Use, isUndecided: Bool)? = state.withLock { state in
      guard !state.isOver else { return nil }
      state.isOver = true
      return (state.use, !state.isDecided)
    }
    if let last { pool.released(last.use, isUndecided: last.isUndecided) }
  }
}
