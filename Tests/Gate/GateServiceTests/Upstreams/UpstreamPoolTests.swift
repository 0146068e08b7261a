import Locking
import Testing
import Transport

@testable import GateService

@Suite("Several servers of a route")
struct UpstreamPoolTests {
  private let clock = LockedValue(ContinuousClock.now)
  private let pool: UpstreamPool
  private let served = LockedValue<[UpstreamServer]>([])

  init() { pool = UpstreamPool { [clock] in clock.withLock(\.self) } }

  private static func server(_ number: Int, tls: UpstreamTLS? = nil) -> UpstreamServer {
    let host = "10.0.0.\(number)"
    let upstream = tls.map { Upstream.secureWebSocket(host: host, port: 443, tls: $0) }
    return UpstreamServer(upstream ?? .webSocket(host: host, port: 80), of: "/")
  }
  private static let servers = (1...10).map { server($0) }

  private func pass(_ time: Duration) { clock.withLock { $0 += time } }

  private func serve(_ servers: [UpstreamServer], _ balance: UpstreamPool.Balance = .leastSessions) {
    served.withLock { $0 = servers }
    pool.serve(servers, balance)
  }

  private func take(for client: [UInt8] = [], besides tried: UpstreamServer...) -> UpstreamPool.Use? {
    pool.choose(among: served.withLock(\.self).filter { !tried.contains($0) }, for: client)
  }

  /// Chooses a server and returns it. Its session stays open.
  private func choose(for client: [UInt8] = [], besides tried: UpstreamServer...) -> UpstreamServer? {
    pool.choose(among: served.withLock(\.self).filter { !tried.contains($0) }, for: client)?.server
  }

  /// Lets a connection to `server` fail.
  private func fail(_ server: UpstreamServer) throws {
    let use = try #require(pool.choose(among: [server], for: []))
    pool.failed(use)
    pool.released(use, isUndecided: false)
  }

  private func state(_ server: UpstreamServer) -> UpstreamServerState? {
    pool.servers.first { $0.upstream == server.text }
  }

  @Test("A server that fails two checks in a row gets no session until it passes one; then its share grows")
  func checks() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    #expect(pool.checked(first.text, isHealthy: false) == nil && state(first)?.condition == .available)
    #expect(pool.checked(first.text, isHealthy: true) == nil)
    #expect(pool.checked(first.text, isHealthy: false) == nil)
    #expect(pool.checked(first.text, isHealthy: false) == true && state(first)?.condition == .unhealthy)
    #expect(pool.checked(first.text, isHealthy: false) == nil)
    for _ in 0..<20 { #expect(choose() == second) }
    // A request has nothing to lose: with every server out, one of them is tried.
    #expect(pool.checked(second.text, isHealthy: false) == nil && pool.checked(second.text, isHealthy: false) == true)
    #expect(choose() != nil)
    #expect(pool.checked(second.text, isHealthy: true) == false && state(second)?.condition == .available)
    #expect(pool.checked(first.text, isHealthy: true) == false)
    for _ in 0..<4 { #expect(choose() == first) }
    #expect(pool.checked("ws://10.0.0.9", isHealthy: false) == nil)
    _ = (pool.checked(first.text, isHealthy: false), pool.checked(first.text, isHealthy: false))
    pool.forgetChecks()
    #expect(state(first)?.condition == .available)
  }

  @Test("10,000 sessions spread over 10 servers differ by one at most, whichever end meanwhile")
  func fairness() throws {
    serve(Self.servers)
    var opened: [UpstreamPool.Use] = []
    for number in 0..<15_000 {
      let use = try #require(take())
      pool.connected(use)
      // Each third session is over before the next one begins.
      if number.isMultiple(of: 3) { pool.released(use, isUndecided: false) } else { opened.append(use) }
    }
    let counts = Self.servers.compactMap { state($0)?.sessions }
    #expect(counts.reduce(0, +) == 10_000 && counts.count == 10)
    #expect(counts.allSatisfy { (999...1001).contains($0) }, "\(counts)")
    // The server that lost its sessions gets the next ones.
    for use in opened.filter({ $0.server == Self.servers[3] }).prefix(5) { pool.released(use, isUndecided: false) }
    for _ in 0..<5 { #expect(choose() == Self.servers[3]) }
  }

  @Test(
    "A server that cannot be connected to rests for twice as long after each failure, and one request tries it then")
  func rest() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    for rest in [2, 4, 8, 16, 32, 60, 60] {
      let trial = try #require(take(besides: second))
      let simultaneous = try #require(take(besides: second))
      pool.failed(trial)
      pool.released(trial, isUndecided: false)
      // A failure of the same moment does not count again.
      pool.failed(simultaneous)
      pool.released(simultaneous, isUndecided: false)
      #expect(state(first)?.condition == .resting)
      pass(.seconds(rest) - .milliseconds(1))
      for _ in 0..<3 {
        let use = try #require(take())
        #expect(use.server == second)
        pool.released(use, isUndecided: false)
      }
      pass(.milliseconds(1))
    }
    // The next request tries it, others do not wait for the result.
    let trial = try #require(take())
    #expect(trial.server == first)
    for _ in 0..<3 { #expect(choose() == second) }
    // The client of the trial has left without a result: the next one tries.
    pool.released(trial, isUndecided: true)
    let next = try #require(take())
    #expect(next.server == first)
    pool.connected(next)
    #expect(state(first)?.condition == .available && state(first)?.failures == 0)
  }

  @Test("A server that comes back gets a share that grows over half a minute")
  func slowStart() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    try fail(first)
    for _ in 0..<100 { #expect(choose() == second) }
    pass(.seconds(2))
    let trial = try #require(take())
    #expect(trial.server == first)
    pool.connected(trial)
    // A tenth at first: it does not get all the next ones.
    for _ in 0..<20 { _ = choose() }
    let early = try #require(state(first)?.sessions)
    #expect((8...14).contains(early), "\(early)")
    pass(.seconds(15))
    for _ in 0..<60 { _ = choose() }
    let half = try #require(state(first)?.sessions)
    #expect((50...62).contains(half), "\(half)")
    pass(.seconds(15))
    pool.connected(trial)
    for _ in 0..<200 { _ = choose() }
    #expect(abs(try #require(state(first)?.sessions) - (try #require(state(second)?.sessions))) <= 1)
  }

  @Test("By device, each client keeps its server; one that leaves moves its own clients alone")
  func byDevice() throws {
    serve(Self.servers, .byDevice)
    let clients = (0..<10_000).map { Array("device \($0)".utf8) }
    let before = try clients.map { try #require(choose(for: $0)) }
    let counts = Self.servers.compactMap { state($0)?.sessions }
    #expect(counts.allSatisfy { (850...1150).contains($0) }, "\(counts)")
    #expect(clients.map { choose(for: $0) } == before)
    let gone = Self.servers[4]
    try fail(gone)
    for (client, server) in zip(clients, before) {
      let now = try #require(choose(for: client))
      #expect(now != gone && (server == gone || now == server))
    }
  }

  @Test("If none is available, the one whose rest ends first is tried; of all tried ones, none")
  func noneAvailable() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    try fail(second)
    pass(.seconds(1))
    try fail(first)
    #expect(choose() == second)
    #expect(choose(besides: second) == first)
    #expect(choose(besides: first, second) == nil)
  }

  @Test("A drained server gets no new session and keeps its open ones; the last one cannot be drained")
  func drain() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    #expect(choose() == first)
    #expect(try pool.setDrained(true, first.text).sessions == 1)
    for _ in 0..<5 { #expect(choose() == second) }
    #expect(throws: UpstreamPool.DrainError.isLast) { try pool.setDrained(true, second.text) }
    #expect(throws: UpstreamPool.DrainError.unknown) { try pool.setDrained(true, "ws://10.0.0.9:80") }
    // Drained twice is drained.
    #expect(try pool.setDrained(true, first.text).condition == .drained)
    // A request whose other server has failed has nothing to lose.
    #expect(choose(besides: second) == first)
    #expect(try pool.setDrained(false, first.text).condition == .available)
    pass(.seconds(30))
    #expect(choose() == first)
  }

  @Test("A reload keeps the numbers of the servers that stay, and starts new ones slowly")
  func reload() throws {
    let (first, second, third) = (Self.servers[0], Self.servers[1], Self.servers[2])
    serve([first, second])
    for _ in 0..<100 { _ = choose() }
    try fail(second)
    _ = try pool.setDrained(true, second.text)
    // Equal servers of another configuration are the same.
    serve([Self.server(2), third, Self.server(1)])
    #expect(pool.servers.map(\.sessions) == [50, 0, 50])
    #expect(state(second)?.condition == .drained)
    for _ in 0..<20 { _ = choose() }
    #expect((4...16).contains(try #require(state(third)?.sessions)))
  }

  @Test("A server that is removed and added again counts its sessions; no count goes below zero")
  func removed() throws {
    let (first, second, third) = (Self.servers[0], Self.servers[1], Self.servers[2])
    serve([first, second])
    let uses = try (0..<10).map { _ in try #require(take()) }
    serve([second, third])
    #expect(pool.servers.map(\.sessions) == [5, 0])
    for use in uses.prefix(4) { pool.released(use, isUndecided: false) }
    serve([first, second])
    #expect(pool.servers.map(\.sessions) == [3, 3])
    for use in uses.dropFirst(4) { pool.released(use, isUndecided: false) }
    #expect(pool.servers.map(\.sessions) == [0, 0])
    // Nothing is open any more: it is forgotten, and is new when it returns.
    serve([second])
    #expect(!pool.isShared)
    serve([first, second])
    #expect(pool.servers.map(\.sessions) == [0, 0])
  }

  @Test("Other settings for TLS, and a time as the only server, change neither numbers nor what an operator drained")
  func sameServer() throws {
    let (first, second) = (Self.server(1, tls: UpstreamTLS()), Self.server(2, tls: UpstreamTLS()))
    serve([first, second])
    let use = try #require(take())
    _ = try pool.setDrained(true, second.text)
    let other = UpstreamTLS(serverName: "other.example")
    let renamed = [Self.server(1, tls: other), Self.server(2, tls: other)]
    serve(renamed)
    #expect(pool.servers.map(\.sessions) == [1, 0] && pool.servers.map(\.condition) == [.available, .drained])
    serve([renamed[0]])
    serve(renamed)
    #expect(pool.servers.map(\.sessions) == [1, 0] && pool.servers.map(\.condition) == [.available, .drained])
    pool.released(use, isUndecided: false)
    #expect(pool.servers.map(\.sessions) == [0, 0])
  }

  @Test("A request of an earlier configuration does not reach servers of a later one")
  func earlier() throws {
    let (first, second) = (Self.servers[0], Self.servers[1])
    serve([first, second])
    let choice = try #require(UpstreamChoice(among: [first, second], from: pool, for: []))
    serve([Self.servers[2], Self.servers[3]])
    #expect(choice.next(mayTryAnother: true) == nil && choice.server == first)
    #expect(pool.choose(among: [first, second], for: []) == nil)
    #expect(UpstreamChoice(among: [first, second], from: pool, for: []) == nil)
  }
}

@Suite("The server of one request")
struct UpstreamChoiceTests {
  private let servers = (1...3).map { UpstreamServer(.webSocket(host: "10.0.0.\($0)", port: 80), of: "/") }
  private let clock = LockedValue(ContinuousClock.now)
  private let pool: UpstreamPool

  init() {
    pool = UpstreamPool { [clock] in clock.withLock(\.self) }
    pool.serve(servers, .leastSessions)
  }

  private var open: [Int?] { pool.servers.map(\.sessions) }
  private func choice() throws -> UpstreamChoice { try #require(UpstreamChoice(among: servers, from: pool, for: [])) }

  @Test("Each server is tried once; the session counts for one at a time, and for none at the end")
  func failover() throws {
    let choice = try choice()
    #expect(choice.server == servers[0] && choice.hasAlternative && open == [1, 0, 0])
    #expect(choice.next(mayTryAnother: true) == servers[1])
    #expect(choice.server == servers[1] && choice.hasAlternative && open == [0, 1, 0])
    #expect(choice.next(mayTryAnother: true) == servers[2])
    #expect(!choice.hasAlternative && open == [0, 0, 1])
    #expect(choice.next(mayTryAnother: true) == nil)
    #expect(pool.servers.map(\.condition) == [.resting, .resting, .resting])
    choice.end()
    choice.end()
    #expect(open == [0, 0, 0])
  }

  @Test("If no other server may be tried, the failure counts all the same")
  func late() throws {
    let choice = try choice()
    #expect(choice.next(mayTryAnother: false) == nil)
    #expect(pool.servers[0].condition == .resting && choice.server == servers[0])
  }

  @Test("A server that is tried after a connection to another one was lost is available when it accepts")
  func afterConnection() throws {
    let down = try #require(pool.choose(among: [servers[1]], for: []))
    pool.failed(down)
    pool.released(down, isUndecided: false)
    clock.withLock { $0 += .seconds(2) }
    let choice = try #require(UpstreamChoice(among: [servers[0], servers[1]], from: pool, for: []))
    #expect(choice.server == servers[0])
    choice.connected()
    #expect(choice.next(mayTryAnother: true) == servers[1])
    choice.connected()
    #expect(pool.servers.map(\.condition) == [.resting, .available, .available])
  }

  @Test("A request that is forgotten no longer counts")
  func forgotten() throws {
    do {
      let choice = try choice()
      choice.connected()
      #expect(open == [1, 0, 0])
    }
    #expect(open == [0, 0, 0])
    #expect(UpstreamChoice(among: servers, from: UpstreamPool(), for: []) == nil)
  }
}

@Suite("Rewritten requests")
struct RequestRewriteTests {
  @Test(
    "The path of the route is removed or replaced, however its segments are escaped",
    arguments: [
      ("/chat", "/", "/chat/room?x=/y", "/room?x=/y"), ("/chat", "/", "/chat", "/"), ("/chat", "/", "/chat/", "/"),
      ("/chat", "/", "/chat?x", "/?x"), ("/chat", "/", "/ch%61t/r%2Dm", "/r%2Dm"),
      ("/chat", "/v2", "/chat/room", "/v2/room"), ("/chat", "/v2", "/chat", "/v2"),
      ("/chat", "/v2", "/chat?a=b", "/v2?a=b"), ("/chat", "/v2/x", "/chat/", "/v2/x/"),
      ("/a/b", "/", "/%61/b/c", "/c"), ("/a/b", "/a", "/a/b/c?/d", "/a/c?/d"),
      ("/", "/v2", "/", "/v2/"), ("/", "/v2", "/a?b", "/v2/a?b"), ("/", "/", "/a", "/a"),
    ] as [(String, String, String, String)])
  func target(route: String, path: String, sent: String, expected: String) {
    #expect(RequestRewrite(path: path).target(of: sent, below: route) == expected)
    #expect(RequestRewrite().target(of: sent, below: route) == sent)
  }
}
