import ByteCoding
import GateFixtures
import Wire
import Testing
import Transport

@testable import GateService

@Suite("The health of upstreams")
struct UpstreamHealthTests {
  private let clock = ManualClock()
  private let health: UpstreamHealth

  init() throws {
    health = UpstreamHealth(clock: clock.wallClock)
    health.serve([try Self.route("/", port: 8080)])
  }

  private static func route(_ path: String, port: UInt16) throws -> Route {
    try #require(Route(path: path, upstream: .webSocket(host: "127.0.0.1", port: port)))
  }

  private func condition(after results: [UpstreamResult]) -> GateStatus.UpstreamState.Condition? {
    for result in results { health.note(result, on: "/") }
    return health.states.first?.condition
  }

  @Test("Without an attempt an upstream is untried, which is no warning")
  func untried() {
    #expect(health.states.map(\.condition) == [.untried])
    #expect(health.checks == [.init(name: "upstream /", ready: true, detail: "not tried yet", warning: nil)])
  }

  @Test("A failed last attempt is a warning, of each kind of failure", arguments: UpstreamResult.allCases)
  func last(_ result: UpstreamResult) {
    #expect(
      condition(after: [.connected, .connected, .connected, result]) == (result.isFailure ? .failing : .available))
  }

  @Test(
    "Half of the recent attempts are a warning, even if the last one succeeded; fewer are none",
    arguments: [
      ([.timedOut, .connected], .available), ([.timedOut, .connected, .timedOut, .connected], .failing),
      ([.timedOut, .connected, .connected, .connected], .available),
      ([.timedOut, .refused, .timedOut, .refused], .failing),
      (Array(repeating: .timedOut, count: 100) + Array(repeating: .connected, count: 8), .failing),
      (Array(repeating: .timedOut, count: 100) + Array(repeating: .connected, count: 9), .available),
    ] as [([UpstreamResult], GateStatus.UpstreamState.Condition)])
  func recent(_ results: [UpstreamResult], _ expected: GateStatus.UpstreamState.Condition) {
    #expect(condition(after: results) == expected)
  }

  @Test("A refusal by the upstream is no failure and no success; a status of 500 or above is a failure")
  func refusals() {
    func result(_ status: Int) -> UpstreamResult? { UpstreamResult(.refused(Response(status: status))) }
    #expect([200, 401, 404, 499].map(result) == Array(repeating: .refused, count: 4))
    #expect([500, 502, 503, 599].map(result) == Array(repeating: .serverError, count: 4))
    health.note(.refused, on: "/")
    #expect(health.states[0].lastSuccess == nil && health.states[0].lastFailure == nil && health.states[0].refused == 1)
  }

  @Test("The state has counts, the last success and the last failure, with their age and reason")
  func moments() throws {
    health.note(.connected, on: "/")
    clock.advance(by: .seconds(5))
    health.note(.unreachable, detail: "127.0.0.1:8080: connect: Connection refused", on: "/")
    clock.advance(by: .seconds(7))
    let state = try #require(health.states.first)
    #expect(state.connected == 1 && state.failed == 1 && state.recentAttempts == 2 && state.recentFailures == 1)
    #expect(state.lastSuccess?.secondsAgo == 12 && state.lastFailure?.secondsAgo == 7)
    #expect(state.lastFailureReason == "unreachable: 127.0.0.1:8080: connect: Connection refused")
    // Anyone may read the checks at metrics.listen.
    #expect(health.checks[0].warning == true && health.checks[0].detail.contains("(unreachable)"))
    #expect(!health.checks[0].detail.contains("127.0.0.1"))
  }

  @Test("A reload keeps the results of a route with the same upstream, and drops those of others")
  func reload() throws {
    health.serve([try Self.route("/", port: 8080), try Self.route("/game", port: 8081)])
    health.note(.connected, on: "/")
    health.note(.connected, on: "/game")
    health.serve([try Self.route("/", port: 8080), try Self.route("/game", port: 9999)])
    #expect(health.states.map(\.condition) == [.available, .untried])
    health.serve([try Self.route("/", port: 8080)])
    health.note(.timedOut, on: "/game")
    #expect(health.states.map(\.route) == ["/"])
  }

  @Test("Each end of a session has its counter from the start")
  func ends() throws {
    let ends: [SessionSummary.End] = [
      .closed(by: .client, code: nil), .closed(by: .upstream, code: 1000), .closedByGate(1001, reason: ""),
      .lost(.client, ""), .lost(.upstream, ""),
    ]
    #expect(ends.map(\.word) == SessionSummary.End.words)
  }
}
