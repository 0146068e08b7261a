internal import ByteCoding
internal import Locking
internal import Transport

/// The servers of a route that has several, and the choice of one for each request.
///
/// A server that could not be connected to rests, for 2 seconds first and twice as long after each further failure, up
/// to a minute. Then one request tries it; the others go elsewhere until it has succeeded. Only failures before a request
/// is sent count: by the answer to its request, a client could take a server away from all others.
///
/// With health checks, a server that fails two in a row gets no new sessions until it passes one.
///
/// A server that comes back, or joins by a reload, gets a share that grows over half a minute (slow start). With
/// `.byDevice` it gets all of its devices at once: otherwise they would change servers twice.
///
/// A pool outlives a configuration. Its numbers stay with the servers that a reload keeps, by the text that operators know:
/// a server with other settings for TLS is the same one. A removed server is remembered while sessions to it are open, or
/// while it is drained.
final class UpstreamPool: Sendable {
  /// How a server is chosen among those that are available.
  enum Balance: Sendable, Hashable {
    /// That with the fewest open sessions in proportion to its share.
    case leastSessions
    /// By the device, so that each of its sessions reaches the same server while that one is available: the highest
    /// random weight of key and server (Thaler, Ravishankar 1998), by which a server that leaves moves its own devices
    /// alone. Clients without a key are told apart by their address.
    case byDevice
  }

  /// The use of a server by one request.
  struct Use: Sendable {
    let server: UpstreamServer
    fileprivate let member: Int
  }

  private struct Member {
    /// Unique in the pool.
    let id: Int
    var server: UpstreamServer
    /// Whether the configuration has it.
    var isServed = true
    var open = 0
    var failures = 0
    var restsUntil: ContinuousClock.Instant?
    /// Whether a request tries the server after its rest.
    var isOnTrial = false
    /// Since when the share grows; `nil` for a server with its full share.
    var growsSince: ContinuousClock.Instant?
    var isDrained = false
    /// The health checks that failed since the last that succeeded.
    var failedChecks = 0

    var isUnhealthy: Bool { failedChecks >= UpstreamPool.failedChecksOfUnhealthy }

    init(_ id: Int, _ server: UpstreamServer, growsSince: ContinuousClock.Instant? = nil) {
      self.id = id
      self.server = server
      self.growsSince = growsSince
    }

    /// Whether it is remembered after its removal.
    var isRemembered: Bool { open > 0 || isDrained }

    func isAvailable(at now: ContinuousClock.Instant) -> Bool {
      guard !isDrained, !isUnhealthy else { return false }
      guard let restsUntil else { return true }
      return restsUntil <= now && !isOnTrial
    }

    func state(at now: ContinuousClock.Instant) -> UpstreamServerState {
      UpstreamServerState(
        upstream: server.text,
        condition: isDrained ? .drained : isUnhealthy ? .unhealthy : isAvailable(at: now) ? .available : .resting,
        sessions: open, failures: failures)
    }

    /// The sessions, one more included, in proportion to the server's share: from a tenth to 1.
    func load(at now: ContinuousClock.Instant) -> Double {
      let share = growsSince.map { min(1, max(0.1, $0.duration(to: now) / UpstreamPool.growth)) }
      return Double(open + 1) / (share ?? 1)
    }
  }

  private struct State {
    /// Those of the configuration, in its order; then removed ones with open sessions.
    var members: [Member] = []
    var lastID = 0
    var balance = Balance.leastSessions
    /// Where the search for the next server begins, so that equal ones take turns.
    var turn = 0

    mutating func member(for server: UpstreamServer, growsSince: ContinuousClock.Instant?) -> Member {
      guard var known = members.first(where: { $0.server.text == server.text }) else {
        lastID += 1
        return Member(lastID, server, growsSince: growsSince)
      }
      known.server = server
      if !known.isServed { (known.isServed, known.growsSince) = (true, growsSince) }
      return known
    }
  }

  private static let growth = Duration.seconds(30)
  private static let shortestRest = Duration.seconds(2)
  private static let longestRest = Duration.seconds(60)
  /// One failure may be that of the network.
  private static let failedChecksOfUnhealthy = 2

  private let state = LockedValue(State())
  private let now: @Sendable () -> ContinuousClock.Instant

  init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.now = now }

  /// Uses `servers` from now on. The numbers of those that were in the pool before stay.
  func serve(_ servers: [UpstreamServer], _ balance: Balance) {
    let now = now()
    state.withLock { state in
      let joined = state.members.isEmpty ? nil : now
      let served = servers.map { state.member(for: $0, growsSince: joined) }
      let removed = state.members.filter { member in
        member.isRemembered && !served.contains { $0.id == member.id }
      }
      state.members =
        served
        + removed.map { member in
          var member = member
          member.isServed = false
          return member
        }
      state.balance = balance
    }
  }

  // MARK: Choosing

  /// Chooses one of `servers`, and counts a session for it until `released`. If none is available, it is the one whose rest
  /// ends first, and then a drained one: a request has nothing to lose.
  ///
  /// - Parameters:
  ///   - servers: Those of the request's own configuration, which a reload may have replaced.
  ///   - client: The bytes by which `.byDevice` tells clients apart.
  /// - Returns: `nil` if the pool has none of `servers`.
  func choose(among servers: [UpstreamServer], for client: some Sequence<UInt8>) -> Use? {
    let now = now()
    return state.withLock { state in
      let left = state.members.indices.filter {
        state.members[$0].isServed && servers.contains(state.members[$0].server)
      }
      let available = left.filter { state.members[$0].isAvailable(at: now) }
      let chosen =
        if available.isEmpty {
          left.min { Self.isEarlier(state.members[$0], state.members[$1]) }
        } else {
          switch state.balance {
          case .leastSessions: Self.leastUsed(of: available, state, at: now)
          case .byDevice: Self.closest(to: client, of: available, state)
          }
        }
      guard let chosen else { return nil }
      state.turn = (chosen + 1) % state.members.count
      state.members[chosen].open += 1
      if state.members[chosen].restsUntil != nil { state.members[chosen].isOnTrial = true }
      return Use(server: state.members[chosen].server, member: state.members[chosen].id)
    }
  }

  private static func isEarlier(_ first: Member, _ second: Member) -> Bool {
    guard first.isDrained == second.isDrained else { return second.isDrained }
    guard first.isUnhealthy == second.isUnhealthy else { return second.isUnhealthy }
    guard let firstEnd = first.restsUntil, let secondEnd = second.restsUntil else { return first.restsUntil == nil }
    return firstEnd < secondEnd
  }

  /// - Parameter indices: Not empty.
  private static func leastUsed(of indices: [Int], _ state: State, at now: ContinuousClock.Instant) -> Int? {
    // The first one behind the last choice wins a tie.
    let inTurn = indices.filter { $0 >= state.turn } + indices.filter { $0 < state.turn }
    return inTurn.min { first, second in
      state.members[first].load(at: now) < state.members[second].load(at: now)
    }
  }

  private static func closest(to client: some Sequence<UInt8>, of indices: [Int], _ state: State) -> Int? {
    let seed = hash(client, from: 0xCBF2_9CE4_8422_2325)
    return indices.max { first, second in
      weight(of: state.members[first].server, seed) < weight(of: state.members[second].server, seed)
    }
  }

  private static func weight(of server: UpstreamServer, _ seed: UInt64) -> UInt64 {
    var weight = hash(server.text.utf8, from: seed)
    // The last bytes hardly reach the high bits of an FNV hash: mixed as in MurmurHash3.
    weight = (weight ^ weight >> 33) &* 0xFF51_AFD7_ED55_8CCD
    weight = (weight ^ weight >> 33) &* 0xC4CE_B9FE_1A85_EC53
    return weight ^ weight >> 33
  }

  /// FNV-1a of 64 bits. The same in each process, so that gates of a cluster choose alike.
  private static func hash(_ bytes: some Sequence<UInt8>, from start: UInt64) -> UInt64 {
    bytes.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }

  // MARK: Results

  /// Records that the server accepted a connection.
  func connected(_ use: Use) {
    let now = now()
    change(use) { member in
      member.failures = 0
      member.isOnTrial = false
      if member.restsUntil != nil { (member.restsUntil, member.growsSince) = (nil, now) }
      if let since = member.growsSince, since.duration(to: now) >= Self.growth { member.growsSince = nil }
    }
  }

  /// Records that no connection to the server was made. Failures of requests that were under way at the same time count as
  /// one.
  func failed(_ use: Use) {
    let now = now()
    change(use) { member in
      member.isOnTrial = false
      if let end = member.restsUntil, end > now { return }
      member.failures += 1
      member.restsUntil = now + min(Self.shortestRest * (1 << min(member.failures - 1, 5)), Self.longestRest)
    }
  }

  /// Records a health check of the server named `text`.
  ///
  /// - Returns: Whether it is unhealthy now, if that is a change.
  func checked(_ text: String, isHealthy: Bool) -> Bool? {
    let now = now()
    return state.withLock { state in
      guard let index = state.members.firstIndex(where: { $0.isServed && $0.server.text == text }) else { return nil }
      let before = state.members[index].isUnhealthy
      if isHealthy {
        state.members[index].failedChecks = 0
        if before { state.members[index].growsSince = now }
      } else {
        state.members[index].failedChecks = min(state.members[index].failedChecks + 1, Self.failedChecksOfUnhealthy)
      }
      let isUnhealthy = state.members[index].isUnhealthy
      return isUnhealthy == before ? nil : isUnhealthy
    }
  }

  /// Forgets the results of health checks, which a new configuration does not have.
  func forgetChecks() {
    state.withLock { state in
      for index in state.members.indices { state.members[index].failedChecks = 0 }
    }
  }

  /// Ends what `choose` began.
  ///
  /// - Parameter isUndecided: Whether the request ended before the connection was made or had failed.
  func released(_ use: Use, isUndecided: Bool) {
    change(use) { member in
      member.open -= 1
      if isUndecided { member.isOnTrial = false }
    }
  }

  private func change(_ use: Use, _ body: (inout Member) -> Void) {
    state.withLock { state in
      guard let index = state.members.firstIndex(where: { $0.id == use.member }) else { return }
      body(&state.members[index])
      if !state.members[index].isServed, !state.members[index].isRemembered { state.members.remove(at: index) }
    }
  }

  // MARK: Operators

  /// Whether the configuration has several servers.
  var isShared: Bool { state.withLock { $0.members.count(where: \.isServed) } > 1 }

  /// The servers, in the order of the configuration.
  var servers: [UpstreamServerState] {
    let now = now()
    return state.withLock(\.members).filter(\.isServed).map { $0.state(at: now) }
  }

  /// Why a server cannot be drained.
  enum DrainError: Error, Sendable, Hashable {
    case unknown
    /// The route has no other that is not drained.
    case isLast
  }

  /// Sends no new sessions to the server named `text`, or sends it some again. Open sessions stay.
  func setDrained(_ isDrained: Bool, _ text: String) throws(DrainError) -> UpstreamServerState {
    let now = now()
    let result: Result<UpstreamServerState, DrainError> = state.withLock { state in
      guard let index = state.members.firstIndex(where: { $0.isServed && $0.server.text == text }) else {
        return .failure(.unknown)
      }
      let others = state.members.indices.filter { $0 != index && state.members[$0].isServed }
      if isDrained, others.allSatisfy({ state.members[$0].isDrained }) { return .failure(.isLast) }
      if state.members[index].isDrained, !isDrained { state.members[index].growsSince = now }
      state.members[index].isDrained = isDrained
      return .success(state.members[index].state(at: now))
    }
    return try result.get()
  }
}
