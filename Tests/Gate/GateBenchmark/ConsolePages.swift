import AppAttest
import ArgumentParser
import AttestGate
import ByteCoding
import ConsoleServing
import Cryptography
import Databases
import Foundation
import GateRuntime
import GateFixtures
import GateService
import Locking
import Logging
import Observability
import PostgresStore
import SQLiteStore
import Transport

/// Measures the pages of the console over a store that `scripts/bench --console` has filled, with many open sessions.
/// There are no sockets: the console asks the admin server's operations directly.
struct ConsolePages: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Measures the console's pages at a filled store, with many sessions.",
    discussion: """
      The keys are SHA-256 of "key 0", "key 1" and so on. Stores decisions about some of them, opens the sessions of \
      other devices, and asks for each page in turn. Prints one JSON object.
      """)

  @Option(help: "sqlite:///path or postgres://…")
  var store: String

  @Option(help: "The number of keys in the store.")
  var keys: Int

  @Option(help: "The number of open sessions.")
  var sessions = 100_000

  @Option(help: "How often each page is asked for.")
  var rounds = 100

  func validate() throws {
    guard keys >= 1000, sessions > 0, rounds > 0 else {
      throw ValidationError("--keys must be at least 1000, and --sessions and --rounds must be positive")
    }
  }

  func run() throws {
    let store: any GateStore =
      if store.hasPrefix("sqlite://") {
        SQLiteStore(path: String(store.dropFirst("sqlite://".count)))
      } else {
        PostgresStore(try ConnectionParameters(url: store))
      }
    let (keys, sessions, rounds) = (keys, sessions, rounds)
    let result = try awaited { () async throws -> String in
      try await store.open()
      let site = try await ConsoleBench(store: store, keys: keys, sessions: sessions)
      return try await site.measure(rounds)
    }
    print(result)
  }
}

/// A console, its gate's admin operations, and the sessions and refusals that they list.
private final class ConsoleBench: Sendable {
  private static let host = "127.0.0.1:4000"

  private let store: any GateStore
  private let keys: Int
  private let site: ConsoleSite
  private let cookie: String
  /// Sessions are listed as long as their plans live.
  private let plans: [any RelayPlan]
  private let sessions: LiveSessions

  init(store: any GateStore, keys: Int, sessions count: Int) async throws {
    (self.store, self.keys) = (store, keys)
    let (sessions, metrics) = (LiveSessions(), GateMetrics())
    self.sessions = sessions
    plans = try await Self.open(count, in: sessions, metrics)
    try await Self.storeDecisions(in: store)
    let silent = Logger(label: "gate-bench") { _ in SwiftLogNoOpLogHandler() }
    let router = AdminRouter(
      [
        KeyResource(store: store, sessions: sessions, logger: silent), DecisionResource(store: store),
        SessionResource(sessions, logger: silent), RefusalResource(metrics.refusalLog),
      ], access: .anyone)
    let link = ConsoleLink(program: "sallyport", service: "gate", options: { _ in [] }) {
      method, target, _ throws(ConsoleFault) in
      let answer = await router.response(
        to: Request(
          id: "bench", method: method, target: target, path: String(target.prefix { $0 != "?" }),
          headers: HeaderFields()))
      return ConsoleLink.Reply(status: answer.status, body: answer.body)
    }
    let access = ConsoleAccess()
    let site = ConsoleSite(
      host: "127.0.0.1", port: 4000, pages: GateConsole(link), access: access, role: .support)
    let answer = await site.answer(
      to: ConsoleRequest(
        method: "POST", path: "/session", query: nil,
        fields: [("Host", Self.host), ("Origin", "http://" + Self.host)], body: Array(access.token.utf8)))
    guard let value = answer.fields.first(where: { $0.name == "Set-Cookie" })?.value else {
      throw ConsoleBenchError.refused("/session", answer.status)
    }
    self.site = site
    cookie = String(value.prefix { $0 != ";" })
  }

  /// Opens `count` sessions of a thousand devices, and fills the list of refusals.
  private static func open(
    _ count: Int, in sessions: LiveSessions, _ metrics: GateMetrics
  ) async throws -> [any RelayPlan] {
    let fleet = try await Fleet(of: 1000)
    guard let chat = Route(path: "/chat", upstream: .webSocket(host: "127.0.0.1", port: 8080)),
      let game = Route(path: "/game", upstream: .webSocket(host: "127.0.0.1", port: 8081)),
      let routes = RouteTable([chat, game])
    else { throw ConsoleBenchError.noRoutes }
    let responder = GateResponder(
      gate: fleet.bench.gate, registrar: fleet.bench.registrar, challenges: fleet.bench.challenges,
      identities: IdentityIssuer(issuer: "gate", audience: "upstream", keys: fleet.bench.identityKeys), routes: routes,
      sessions: sessions, logger: Logger(label: "gate-bench") { _ in SwiftLogNoOpLogHandler() }, metrics: metrics,
      clock: fleet.bench.clock.wallClock)
    var plans: [any RelayPlan] = []
    while plans.count < count {
      // One row for each device: the uses of a device stay in order.
      let claims = try fleet.mint(min(fleet.devices.count, count - plans.count))
      let first = plans.count
      let opened = try await withThrowingTaskGroup(of: (any RelayPlan).self) { group -> [any RelayPlan] in
        for (index, headers) in claims.enumerated() {
          group.addTask {
            let number = first + index
            let request = upgrade(number % 2 == 0 ? "/chat" : "/game", headers, id: number)
            guard case .relay(let plan, _) = await responder.respond(to: request, from: peer(number)) else {
              throw ConsoleBenchError.refused("upgrade", number)
            }
            return plan
          }
        }
        var opened: [any RelayPlan] = []
        for try await plan in group { opened.append(plan) }
        return opened
      }
      plans += opened
    }
    for number in 0..<1000 { _ = await responder.respond(to: upgrade("/chat", [:], id: number), from: peer(number)) }
    return plans
  }

  private static func upgrade(
    _ path: String, _ headers: [AssertionClaim.Name: String], id: Int
  ) -> Request {
    let key = "dGhlIHNhbXBsZSBub25jZQ=="
    var fields = HeaderFields([
      .init(name: "Host", value: "localhost:6200"), .init(name: "Connection", value: "Upgrade"),
      .init(name: "Upgrade", value: "websocket"), .init(name: "Sec-WebSocket-Version", value: "13"),
      .init(name: "Sec-WebSocket-Key", value: key),
    ])
    for (name, value) in headers { fields.append(name.rawValue, value) }
    return Request(
      id: Hex.encode(Array(SHA256.hash(Array("session \(id)".utf8)).prefix(16))), method: "GET", target: path,
      path: path, headers: fields, upgrade: UpgradeIntent(key: key))
  }

  private static func peer(_ number: Int) -> Peer {
    let bytes = [10, number >> 16, number >> 8, number].map { UInt8(truncatingIfNeeded: $0) }
    return Peer(address: .ipv4(bytes, port: 50_000))
  }

  private static func hash(_ number: Int) throws -> String {
    guard let keyID = KeyID(bytes: SHA256.hash(Array("key \(number)".utf8))) else { throw ConsoleBenchError.noRoutes }
    return KeyHash(of: keyID).text
  }

  /// Stores 100 decisions about each of a thousand keys, and 2000 about the first one.
  private static func storeDecisions(in store: any GateStore) async throws {
    let now = Timestamp.now()
    for number in 0..<1000 {
      let hash = try hash(number)
      let decisions = (0..<(number == 0 ? 2000 : 100)).map { index in
        KeyDecision(
          keyHash: hash, kind: index % 2 == 0 ? .admitted : .refused, at: now, status: index % 2 == 0 ? nil : 401,
          code: index % 2 == 0 ? nil : "counter_replayed", step: index % 2 == 0 ? nil : "assertion_counter",
          detail: index % 2 == 0 ? nil : "7 after 7", address: "192.0.2.7",
          requestID: "5f1d0c7e5f1d0c7e5f1d0c7e5f1d0c7e"
        )
      }
      try await store.store(decisions, atMost: 1000)
    }
  }

  private func pages() throws -> [String] {
    let hash = try Self.hash(0)
    let session = sessions.newest(1).first?.principal
    let sessionKey = if case .device(let device)? = session { device.keyHash.text } else { "AAAAAA" }
    let middle = Base64URL.encode([0x80] + [UInt8](repeating: 0, count: 31))
    return [
      "/keys", "/keys?after=\(middle)", "/keys?state=revoked", "/keys?unused=30&after=\(middle)", "/keys?risk=5%2B",
      "/keys?sort=key", "/keys?sort=-key&after=\(middle)", "/keys?key=\(hash.prefix(8))", "/keys/\(hash)",
      "/keys/\(hash)/decisions", "/keys/\(hash)/decisions?after=1000", "/sessions", "/sessions?sort=-opened",
      "/sessions?sort=client", "/sessions?sort=-key", "/sessions?sort=app", "/sessions?key=\(sessionKey.prefix(8))",
      "/refusals", "/refusals?search=7f3a",
    ]
  }

  func measure(_ rounds: Int) async throws -> String {
    // What the gate has in its caches anyway: the inner pages of the tables.
    var cursor: KeyID?
    repeat { cursor = try await store.riskTally(after: cursor, limit: 5000).next } while cursor != nil
    let pages = try pages()
    for page in pages { try await ask(page) }
    let before = Self.memory()
    var times: [String: [Double]] = [:]
    for _ in 0..<rounds {
      for page in pages {
        let start = ContinuousClock.now
        try await ask(page)
        times[page, default: []].append((ContinuousClock.now - start) / .milliseconds(1))
      }
    }
    let rows = pages.map { page in
      let sorted = (times[page] ?? []).sorted()
      let figures = [50, 95, 100].map { percent in
        String(format: "%.2f", sorted[max(0, (sorted.count * percent + 99) / 100 - 1)])
      }
      let name = page.split(separator: "/").map { $0.count > 40 ? "HASH" : String($0) }.joined(separator: "/")
      return #"{"page": "/\#(name)", "p50_ms": \#(figures[0]), "p95_ms": \#(figures[1]), "most_ms": \#(figures[2])}"#
    }
    let memory = #""before": \#(before), "after": \#(Self.memory())"#
    return #"{"sessions": \#(plans.count), "pages": [\#(rows.joined(separator: ", "))], "memory": {\#(memory)}}"#
  }

  private func ask(_ target: String) async throws {
    let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
    let answer = await site.answer(
      to: ConsoleRequest(
        method: "GET", path: parts[0], query: parts.count > 1 ? parts[1] : nil,
        fields: [("Host", Self.host), ("Cookie", cookie)], body: []))
    guard answer.status == 200 else { throw ConsoleBenchError.refused(target, answer.status) }
  }

  /// The memory of the process in bytes: its proportional set size.
  private static func memory() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("Pss:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
  }
}

private enum ConsoleBenchError: Error {
  case noRoutes
  case refused(String, Int)
}
