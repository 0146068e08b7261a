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
    var (found, place): ([String], UInt64) = ([], 0)
    while true {
      let page = sessions.page(in: order, after: place, limit: limit)
      found += page.records.map(\.id)
      guard let next = page.next else { return found }
      place = next
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
    #expect(sessions.page(in: SessionOrder(.route), after: .max, limit: 5).records.isEmpty)
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

  @Test("The first ones of many values are those of a sort")
  func first() {
    var generator = SystemRandomNumberGenerator()
    for count in [0, 1, 5, 50] {
      let values = (0..<200).map { _ in Int.random(in: 0..<40, using: &generator) }
      var first = FirstElements<Int>(count, by: <)
      for value in values { first.add(value) }
      #expect(first.sorted == Array(values.sorted().prefix(count)))
    }
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
  }
}
