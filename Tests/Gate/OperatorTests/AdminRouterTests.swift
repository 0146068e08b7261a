import AppAttest
import AttestGate
import Foundation
import GateService
import Locking
import Logging
import SQLiteStore
import Testing
import Transport

@Suite("The operations of the admin server", .timeLimit(.minutes(2)))
struct AdminRouterTests {
  private static func answer(
    _ method: String, _ target: String, body: String = "", over store: SQLiteStore, readiness: [ReadinessCheck] = [],
    log: LockedValue<[String]> = LockedValue([])
  ) async -> Response {
    let logger = Logger(label: "test") { _ in LineCollector(lines: log) }
    let sessions = LiveSessions()
    let router = AdminRouter(
      [
        HealthResource(readiness + [.store(store)]), KeyResource(store: store, sessions: sessions, logger: logger),
        SessionResource(sessions, logger: logger),
      ], access: .anyone)
    return await router.response(
      to: Request(
        id: "id", method: method, target: target, path: String(target.prefix { $0 != "?" }), headers: HeaderFields(),
        body: Array(body.utf8)))
  }

  /// Collects the lines of a log.
  private struct LineCollector: LogHandler {
    let lines: LockedValue<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
  }

  /// The body of every refusal.
  private struct Refusal: Decodable {
    let error: String
    let code: String
    let hint: String?
  }

  static let refused: [(method: String, target: String, status: Int, code: String)] = [
    ("GET", "/", 404, "not_found"), ("GET", "/v1/keys/", 404, "not_found"), ("GET", "/v1/keys/a/b", 404, "not_found"),
    ("GET", "/v2/keys", 404, "not_found"),
    ("POST", "/v1/keys", 405, "method_not_allowed"), ("GET", "/v1/keys/AAAAAA/revoke", 405, "method_not_allowed"),
    ("PUT", "/v1/keys/AAAAAA", 405, "method_not_allowed"),
    ("GET", "/v1/keys?page=2", 400, "unknown_parameter"), ("GET", "/livez?verbose", 400, "unknown_parameter"),
    ("GET", "/v1/keys?%FF=2", 400, "unknown_parameter"),
    ("GET", "/v1/keys?limit=0", 400, "malformed_parameter"), ("GET", "/v1/keys?limit=1001", 400, "malformed_parameter"),
    ("GET", "/v1/keys?limit=+5", 400, "malformed_parameter"), ("GET", "/v1/keys?limit", 400, "malformed_parameter"),
    ("GET", "/v1/keys?limit=1&limit=1", 400, "malformed_parameter"),
    ("GET", "/v1/keys?app=%", 400, "malformed_parameter"), ("GET", "/v1/keys?app=%F", 400, "malformed_parameter"),
    ("GET", "/v1/keys?app=%FF", 400, "malformed_parameter"), ("GET", "/v1/keys?app=x", 400, "malformed_parameter"),
    ("GET", "/v1/keys?state=gone", 400, "malformed_parameter"), ("GET", "/v1/keys?after=x", 400, "malformed_parameter"),
    ("GET", "/v1/keys?unused_since=90d", 400, "malformed_parameter"),
    ("GET", "/v1/keys?prefix=AAAAA", 400, "malformed_parameter"),
    ("GET", "/v1/keys?prefix=AAAAAA&after=x", 400, "malformed_parameter"),
    ("GET", "/v1/sessions?after=-1", 400, "malformed_parameter"), ("GET", "/v1/sessions?key=x", 400, "malformed_key"),
    ("GET", "/readyz?verbose=2", 400, "malformed_parameter"),
    ("GET", "/v1/keys/AAAAA", 400, "malformed_key"), ("GET", "/v1/keys/AAAAA%2F", 400, "malformed_key"),
    ("GET", "/v1/keys/AAAAAA", 404, "unknown_key"), ("POST", "/v1/keys/AAAAAA/revoke", 404, "unknown_key"),
    ("POST", "/v1/keys/AAAAAA/restore", 404, "unknown_key"), ("DELETE", "/v1/keys/AAAAAA", 404, "unknown_key"),
    ("DELETE", "/v1/sessions/0123", 404, "unknown_session"),
  ]

  @Test("An invalid request is refused in one form", arguments: refused)
  func refusal(_ request: (method: String, target: String, status: Int, code: String)) async throws {
    try await StoreBench.with([]) { bench in
      try await bench.use { store in
        let answer = await Self.answer(request.method, request.target, over: store)
        #expect(answer.status == request.status)
        let refusal = try JSONDecoder().decode(Refusal.self, from: Data(answer.body))
        #expect(refusal.code == request.code)
        #expect(!refusal.error.isEmpty)
        #expect(answer.headers.first("Content-Type") == "application/json")
        #expect(answer.headers.first("X-Request-Id") == "id")
        #expect((answer.headers.first("Allow") != nil) == (answer.status == 405))
      }
    }
  }

  @Test("An unexpected body is refused")
  func body() async throws {
    try await StoreBench.with([]) { bench in
      try await bench.use { store in
        #expect(await Self.answer("GET", "/v1/keys", body: "x", over: store).status == 400)
      }
    }
  }

  @Test("Pages of any size list each key once, in one order; a cursor stays valid after its key is removed")
  func pages() async throws {
    try await StoreBench.with(try (0..<23).map { try Fixture.entry($0, revoked: $0 < 4) }) { bench in
      try await bench.use { store in
        func list(_ query: String) async throws -> [String] {
          var keys: [String] = []
          var target = "/v1/keys?" + query
          while true {
            let body = await Self.answer("GET", target, over: store).body
            let page = try #require(AdminJSON.value(KeyListing.self, in: body))
            keys += page.keys.map(\.key)
            guard let next = page.next else { return keys }
            target = "/v1/keys?\(query)&after=\(next)"
          }
        }
        let all = try await list("limit=1000")
        #expect(Set(all) == Set(try (0..<23).map(Fixture.hash)))
        for limit in [1, 7, 23] { #expect(try await list("limit=\(limit)") == all) }
        #expect(try await list("limit=3&state=revoked").count == 4)
        #expect(try await list("limit=3&state=active&app=AAABBBCCC1.com.example.app").count == 19)

        let first = await Self.answer("GET", "/v1/keys?limit=5", over: store).body
        let page = try #require(AdminJSON.value(KeyListing.self, in: first))
        let last = try #require(page.keys.last).key
        #expect(await Self.answer("DELETE", "/v1/keys/\(last)", over: store).status == 200)
        let rest = await Self.answer("GET", "/v1/keys?limit=1000&after=\(try #require(page.next))", over: store).body
        #expect(try #require(AdminJSON.value(KeyListing.self, in: rest)).keys.map(\.key) == Array(all[5...]))
      }
    }
  }

  @Test("Excluded checks do not count, and a name that no check has excludes nothing and is named, as in Kubernetes")
  func excluded() async throws {
    let store = SQLiteStore(path: "/nowhere/state.db")
    let others = [ReadinessCheck("a b") { .unready("down") }, ReadinessCheck("c") { .ready("fine") }]
    func ask(_ query: String, _ readiness: [ReadinessCheck] = []) async -> Response {
      await Self.answer("GET", "/readyz?" + query, over: store, readiness: readiness)
    }
    #expect(await ask("exclude=store").status == 200)
    #expect(await ask("exclude=store").text == "ready\n")
    #expect(await ask("exclude=store", others).status == 503)
    let both = await ask("verbose&exclude=store&exclude=a%20b", others)
    #expect(both.status == 200)
    #expect(
      both.text == "[+] a b: excluded: down\n[+] c: fine\n[+] store: excluded: not opened yet\nready\n", "\(both.text)")
    #expect(await ask("exclude=a+b&exclude=store", others).status == 200)
    // The state of the other checks counts as before.
    for name in ["other", "STORE", "store%00", "", "store,c"] {
      let answer = await ask("exclude=\(name)")
      #expect(answer.status == 503, "\(name)")
      #expect(answer.text.hasPrefix("warn: some health checks cannot be excluded: no matches for \""), "\(answer.text)")
      #expect(answer.text.hasSuffix("\"\nnot ready\n"), "\(answer.text)")
    }
    let ready = await ask("exclude=store&exclude=x%0Aready%1B%5B2J")
    #expect(ready.status == 200)
    let warning = "warn: some health checks cannot be excluded: no matches for "
    #expect(ready.text == warning + "\"x\u{FFFD}ready\u{FFFD}[2J\"\nready\n")
    let many = await ask((0..<20).map { "exclude=\($0)" + String(repeating: "x", count: 200) }.joined(separator: "&"))
    #expect(many.status == 503 && many.text.utf8.count < 1000 && many.text.contains(" and 12 more\n"), "\(many.text)")
    // Other parameters are not repeated.
    #expect(await ask("verbose&verbose").status == 400)
    #expect(await ask("exclude=%").status == 400)
  }

  @Test("Without its store a gate is not ready, gives the reason, and answers store requests with 503")
  func unready() async throws {
    let store = SQLiteStore(path: "/nowhere/state.db")
    #expect(await Self.answer("GET", "/readyz", over: store).text == "not ready\n")
    let log = LockedValue<[String]>([])
    let refused = await Self.answer("GET", "/v1/keys", over: store, log: log)
    #expect(refused.status == 503)
    let lines = log.withLock(\.self)
    #expect(lines.count == 1 && lines[0].hasPrefix("request of operator failed"), "\(lines)")
    #expect(refused.text.contains("store_unavailable"))
    let ready = await Self.answer(
      "GET", "/readyz?verbose", over: store, readiness: [ReadinessCheck("other") { .ready("fine") }])
    #expect(ready.status == 503)
    #expect(ready.text.hasPrefix("[+] other: fine\n[-] store: failing since "))
    #expect(ready.text.hasSuffix(": store_unreachable\nnot ready\n"))
    // The gate reports that it is alive, and answers requests that need no store.
    #expect(await Self.answer("GET", "/livez", over: store).status == 200)
    #expect(await Self.answer("GET", "/v1/sessions", over: store).status == 200)
  }
}
