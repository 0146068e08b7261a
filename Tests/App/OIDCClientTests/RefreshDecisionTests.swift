import Foundation
import Wire
import Testing

@testable import OIDCClient

@Suite("The decision about a refresh")
struct RefreshDecisionTests {
  private let now = Date(timeIntervalSince1970: 1_800_000_000)

  private enum Expected: Sendable {
    case use, refresh, tryOnce, wait, noToken, refused, lost
  }

  /// The columns: the access token is fresh, nearly expired, expired, rejected, or the clock was set back.
  private static let table: [(state: String, expected: [Expected])] = [
    ("settled", [.use, .refresh, .refresh, .refresh, .refresh]),
    ("sent", [.use, .tryOnce, .tryOnce, .tryOnce, .tryOnce]),
    ("paused", [.use, .use, .wait, .wait, .wait]),
    ("paused before", [.use, .refresh, .refresh, .refresh, .refresh]),
    ("paused for years", [.use, .refresh, .refresh, .refresh, .refresh]),
    ("refused", [.use, .use, .refused, .refused, .refused]),
    ("refused after a lost answer", [.use, .use, .lost, .lost, .lost]),
    ("without a refresh token", [.use, .use, .noToken, .noToken, .noToken]),
  ]

  private func state(_ name: String) -> RefreshState {
    switch name {
    case "sent": .sent(at: now.addingTimeInterval(-10))
    case "paused": .paused(until: now.addingTimeInterval(30))
    case "paused before": .paused(until: now)
    case "paused for years": .paused(until: now.addingTimeInterval(1e8))
    case "refused": .refused("invalid_grant", afterLostAnswer: false)
    case "refused after a lost answer": .refused("invalid_grant", afterLostAnswer: true)
    default: .settled
    }
  }

  @Test("C-012 Each state and each age of the token has its decision", arguments: 0..<8, 0..<5)
  func decision(row: Int, column: Int) {
    let (name, expected) = Self.table[row]
    let remaining: TimeInterval = [60, 59.9, 0, 300, 300 + 3600][column]
    let account = StoredAccount.sample(
      at: now, remaining: remaining, refresh: name == "without a refresh token" ? nil : "r", state: state(name))
    let decision = RefreshDecision(account, at: now, rejected: column == 3 ? "access-0" : nil)
    let wanted: RefreshDecision =
      switch expected[column] {
      case .use: .use
      case .refresh: .refresh
      case .tryOnce: .tryOnce
      case .wait: .wait(until: now.addingTimeInterval(30))
      case .noToken: .signIn(.noRefreshToken)
      case .refused: .signIn(.refused("invalid_grant"))
      case .lost: .signIn(.refusedAfterLostAnswer("invalid_grant"))
      }
    #expect(decision == wanted, "\(name), \(remaining) s")
  }

  @Test("A refused refresh token that was deleted is refused, not missing")
  func deleted() {
    let refused = RefreshState.refused("invalid_grant", afterLostAnswer: false)
    let account = StoredAccount.sample(at: now, remaining: 0, refresh: nil, state: refused)
    #expect(RefreshDecision(account, at: now) == .signIn(.refused("invalid_grant")))
  }

  @Test("A token that was renewed since the rejection is used")
  func renewed() {
    #expect(RefreshDecision(.sample(at: now), at: now, rejected: "another") == .use)
  }

  @Test("A lifetime that is no lifetime decides, and ends no process", arguments: [0, -1, 1e300, .infinity, .nan])
  func lifetime(seconds: TimeInterval) {
    let tokens = AuthTokens(
      accessToken: "a", refreshToken: nil, tokenType: "Bearer", expiresIn: seconds, scope: nil, idToken: nil)
    let account = StoredAccount(
      providerID: "work", issuer: nil, clientID: "app", tokens: tokens, user: nil, issuedAt: now)
    #expect(RefreshDecision(account, at: now) == (seconds > 0 ? .use : .signIn(.noRefreshToken)))
    #expect(!tokens.description.isEmpty)
  }

  // MARK: Failures

  private static let errors: [(OIDCError, RefreshFailure)] = [
    (.transport(.unreachable("")), .notDelivered), (.transport(.untrusted("")), .notDelivered),
    (.transport(.lost("")), .uncertain), (.transport(.malformed("")), .uncertain), (.malformed(""), .uncertain),
    (.tooLarge(""), .uncertain), (.otherIssuer(expected: "", found: ""), .notDelivered),
    (.redirected(""), .requestRefused), (.status(400, of: "", retryAfter: nil), .requestRefused),
    (.status(403, of: "", retryAfter: nil), .requestRefused), (.status(404, of: "", retryAfter: 5), .requestRefused),
    (.status(429, of: "", retryAfter: nil), .postponed(30)),
    (.status(429, of: "", retryAfter: 7), .postponed(7)), (.status(500, of: "", retryAfter: 7), .uncertain),
    (.status(502, of: "", retryAfter: nil), .uncertain), (.status(503, of: "", retryAfter: nil), .uncertain),
    (.status(503, of: "", retryAfter: 9), .postponed(9)),
    (.refused(ProviderRefusal(error: "invalid_grant")), .tokenRefused("invalid_grant")),
    (.refused(ProviderRefusal(error: "invalid_client")), .requestRefused), (.idToken(.subject), .uncertain),
    (.state, .uncertain), (.redirectIssuer(nil), .uncertain), (.notOffered(""), .notDelivered),
    (.tokenType(""), .uncertain), (.clientKey(""), .notDelivered), (.attestation(""), .notDelivered),
    (.attestedKeyChanged, .notDelivered), (.deviceCodeExpired, .uncertain),
  ]

  @Test("C-043 Each error of the request says what became of the refresh token", arguments: errors)
  func failure(error: OIDCError, expected: RefreshFailure) {
    #expect(RefreshFailure(FailedRefresh(stage: .exchanging, error: error)) == expected)
    // New tokens were issued: no error after that makes the old one good.
    #expect(RefreshFailure(FailedRefresh(stage: .verifying, error: error)) == .uncertain)
    #expect(!FailedRefresh(stage: .verifying, error: error).isPassing)
    // Nothing was sent: no error before that makes the token doubtful.
    let before = RefreshFailure(FailedRefresh(stage: .preparing, error: error))
    if case .postponed = before { return }
    #expect(before == .notDelivered)
  }

  @Test("C-043 A request is repeated only if nothing was delivered", arguments: FailedRefresh.Stage.allCases)
  func repeats(stage: FailedRefresh.Stage) {
    let repeated = Self.errors.map(\.0).filter { FailedRefresh(stage: stage, error: $0).isPassing }
    #expect(repeated == (stage == .verifying ? [] : [.transport(.unreachable(""))]))
  }

  @Test("C-043 A pause is between zero and a bound that doubles up to four seconds")
  func backoff() {
    for (number, bound) in [(1, 250), (2, 500), (3, 1000), (4, 2000), (5, 4000), (6, 4000), (1000, 4000)] {
      #expect(Backoff.pause(after: number, random: 0) == .zero)
      #expect(Backoff.pause(after: number, random: 255) == .milliseconds(bound))
      let all = Set((UInt8.min...UInt8.max).map { Backoff.pause(after: number, random: $0) })
      #expect(all.count > 200 && all.allSatisfy { $0 <= .milliseconds(bound) })
    }
  }
}
