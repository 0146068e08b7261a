import AttestGate
import ByteCoding
import GateFixtures
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("The order of sessions in lists")
struct SessionOrderTests {
  /// Opens anonymous sessions at the given routes and hosts, in this order.
  private func open(
    _ places: [(route: String, host: UInt8)], in sessions: LiveSessions
  ) throws -> [LiveSession] {
    let admission = try #require(Gate(rules: [], enforcement: .off).admitAtOnce())
    return try places.enumerated().map { number, place in
      let record = SessionRecord(
        id: "\(number)", admission: admission, address: .ipv4([place.host, 0, 0, 1], port: 7), route: place.route)
      return try sessions.add(record, since: sessions.revocationEpoch(), atMost: .max)
    }
  }

  private func ids(_ text: String, limit: Int, in sessions: LiveSessions) throws -> [String] {
    let order = try #require(SessionOrder(text))
    var (found, cursor): ([String], SessionCursor?) = ([], nil)
    while true {
      let page = sessions.page(in: order, after: cursor, limit: limit)
      found += page.records.map(\.id)
      guard let next = page.next else { return found }
      // As clients send it back.
      let read: SessionCursor = try #require(SessionCursor(next.text(in: order), in: order))
      cursor = read
    }
  }

  @Test("Every column sorts all pages, in both directions; equal values stay in the order of their opening")
  func columns() throws {
    let sessions = LiveSessions()
    let kept = try open([("/b", 10), ("/a", 9), ("/b", 200), ("/a", 9)], in: sessions)
    defer { withExtendedLifetime(kept) {} }
    for (text, expected) in [
      ("opened", "0123"), ("-opened", "3210"), ("route", "1302"), ("-route", "0213"), ("client", "1302"),
      ("-client", "2013"), ("method", "0123"), ("key", "0123"), ("-app", "0123"),
    ] {
      for limit in [1, 2, 3, 4, 9] {
        #expect(try ids(text, limit: limit, in: sessions).joined() == expected, "\(text) \(limit)")
      }
    }
    let end = SessionCursor(value: Array("/c".utf8), number: 0)
    #expect(sessions.page(in: SessionOrder(.route), after: end, limit: 5).records.isEmpty)
    for text in ["", "-", "--opened", "Opened", "age"] { #expect(SessionOrder(text) == nil, "\(text)") }
  }

  @Test("Pages of thousands of sessions have each one once, whether few or many come before")
  func many() throws {
    let sessions = LiveSessions()
    let places = (0..<9000).map { (route: "/\($0 % 7)", host: UInt8($0 % 251)) }
    let kept = try open(places, in: sessions)
    defer { withExtendedLifetime(kept) {} }
    let expected = places.indices.sorted { (places[$0].host, $0) < (places[$1].host, $1) }.map { "\($0)" }
    #expect(try ids("client", limit: 700, in: sessions) == expected)
  }

  @Test("Pages of random sessions are those of a full sort, in every order and for every length")
  func random() throws {
    var generator = SystemRandomNumberGenerator()
    let sessions = LiveSessions()
    // Many equal values, values with a common beginning, and values of which one is the beginning of another.
    let routes = ["", "/", "/a", "/aa", "/aaaaaaaa", "/aaaaaaa", "/aaaaaaab", "/aaaaaaabc", "/é", "/e\u{301}", "/b"]
    let places = (0..<300).map { _ in
      (route: routes.randomElement(using: &generator) ?? "", host: UInt8.random(in: 0..<4, using: &generator))
    }
    let kept = try open(places, in: sessions)
    defer { withExtendedLifetime(kept) {} }
    let byRoute = places.indices.sorted { one, other in
      let (first, second) = (Array(places[one].route.utf8), Array(places[other].route.utf8))
      return first == second ? one < other : first.lexicographicallyPrecedes(second)
    }
    let byHost = places.indices.sorted { (places[$0].host, $0) < (places[$1].host, $1) }
    func descending(_ sorted: [Int], _ isEqual: (Int, Int) -> Bool) -> [Int] {
      // Equal values stay in the order of their opening.
      var groups: [[Int]] = []
      for index in sorted {
        if let last = groups.last?.last, isEqual(last, index) {
          groups[groups.count - 1].append(index)
        } else {
          groups.append([index])
        }
      }
      return groups.reversed().flatMap(\.self)
    }
    for (text, expected) in [
      ("route", byRoute),
      ("-route", descending(byRoute) { places[$0].route.utf8.elementsEqual(places[$1].route.utf8) }),
      ("client", byHost), ("-client", descending(byHost) { places[$0].host == places[$1].host }),
      ("opened", Array(places.indices)), ("-opened", places.indices.reversed()), ("app", Array(places.indices)),
      ("-method", Array(places.indices)),
    ] {
      for limit in [1, 7, 50, 299, 300, 1001] {
        #expect(try ids(text, limit: limit, in: sessions) == expected.map(String.init), "\(text) \(limit)")
      }
    }
  }

  @Test("Sessions of devices sort by their key, their app and their method; those without one come first")
  func devices() async throws {
    let bench = try GateBench()
    let sessions = LiveSessions()
    var (kept, keys): ([LiveSession], [String]) = ([], [])
    for number in 0..<12 {
      let admission =
        if number % 4 == 3 {
          try #require(Gate(rules: [], enforcement: .off).admitAtOnce())
        } else {
          try await bench.gate.admit(try await bench.registeredDevice().claim(over: bench.nonce(), count: 1))
        }
      let record = SessionRecord(
        id: "\(number)", admission: admission, address: .ipv4([10, 0, 0, 1], port: 7), route: "/")
      keys.append(record.principal.keyHash?.text ?? "")
      kept.append(try sessions.add(record, since: sessions.revocationEpoch(), atMost: .max))
    }
    let byKey = keys.indices.sorted { one, other in
      keys[one] == keys[other] ? one < other : Array(keys[one].utf8).lexicographicallyPrecedes(Array(keys[other].utf8))
    }
    let (without, with) = ([3, 7, 11], [0, 1, 2, 4, 5, 6, 8, 9, 10])
    for limit in [1, 5, 12] {
      #expect(try ids("key", limit: limit, in: sessions) == byKey.map(String.init))
      #expect(try ids("app", limit: limit, in: sessions) == (without + with).map(String.init))
      #expect(try ids("-app", limit: limit, in: sessions) == (with + without).map(String.init))
      #expect(try ids("method", limit: limit, in: sessions) == (with + without).map(String.init))
    }
    let wanted = try #require(keys.first)
    let one = sessions.page(where: { $0.text == wanted }, in: SessionOrder(.app), limit: 5)
    #expect(one.records.map(\.id) == ["0"])
    withExtendedLifetime(kept) {}
  }

  @Test("A list that goes on has each remaining session once, also if sessions end and open meanwhile")
  func changes() throws {
    for text in ["route", "-route", "opened"] {
      let sessions = LiveSessions()
      var kept = try open((0..<90).map { (route: "/\($0 % 3)", host: UInt8(1)) }, in: sessions)
      let order = try #require(SessionOrder(text))
      let first = sessions.page(in: order, limit: 40)
      // All sessions that were shown end, that of the cursor too, and a third of the others.
      let shown = Set(first.records.map(\.id))
      kept.removeAll { shown.contains($0.record.id) || (Int($0.record.id) ?? 0) % 9 == 0 }
      let remaining = Set(kept.map(\.record.id))
      var (found, cursor): ([String], SessionCursor?) = ([], first.next)
      while let next = cursor {
        let page = sessions.page(in: order, after: next, limit: 7)
        found += page.records.map(\.id)
        cursor = page.next
      }
      #expect(found.count == remaining.count && Set(found) == remaining, "\(text)")
    }
  }

  @Test("A cursor of another order, and any other text, is refused")
  func cursors() throws {
    let (opened, route) = (SessionOrder(.opened), SessionOrder(.route))
    for (text, order) in [
      ("7.", opened), ("7", route), ("", opened), ("-1", opened), ("x.", route), ("7.ä", route), ("7.a.b", route),
      ("18446744073709551616", opened), ("7." + String(repeating: "A", count: 6000), route),
    ] {
      #expect(SessionCursor(text, in: order) == nil, "\(text)")
    }
    let cursor = SessionCursor(value: [0, 255], number: .max)
    #expect(SessionCursor(cursor.text(in: route), in: route) == cursor)
    #expect(SessionCursor("18446744073709551615", in: opened)?.number == .max)
  }

  @Test("The operation lists sessions in the order of its parameter, and refuses others")
  func operation() async throws {
    let (sessions, bench) = (LiveSessions(), try GateBench())
    let kept = try open([("/b", 1), ("/a", 2)], in: sessions)
    defer { withExtendedLifetime(kept) {} }
    let service = try ServiceBench(bench)
    let router = AdminRouter([SessionResource(sessions, logger: service.log.logger)], access: .anyone)
    func answer(_ query: String) async -> Response {
      await router.response(
        to: Request(
          id: "id", method: "GET", target: "/v1/sessions" + query, path: "/v1/sessions", headers: HeaderFields()))
    }
    for (query, routes) in [("", ["/b", "/a"]), ("?sort=route", ["/a", "/b"]), ("?sort=-opened", ["/a", "/b"])] {
      let listing = AdminJSON.value(SessionListing.self, in: await answer(query).body)
      #expect(listing?.sessions.map(\.route) == routes, "\(query)")
    }
    #expect(await answer("?sort=age").status == 400)
    let page = AdminJSON.value(SessionListing.self, in: await answer("?sort=route&limit=1").body)
    let next = try #require(page?.next)
    let last = AdminJSON.value(SessionListing.self, in: await answer("?sort=route&limit=1&after=\(next)").body)
    #expect(last?.sessions.map(\.route) == ["/b"] && last?.next == nil)
    #expect(await answer("?after=\(next)").status == 400)
  }
}
