import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

@Suite("The refresh of an attested client", .timeLimit(.minutes(1)))
struct AttestedRefreshTests {
  private static let provider = IdentityProvider(
    id: "work", name: "Work", tokenEndpoint: url("https://login.example.com/token"), clientID: "app", scopes: [],
    type: .oauth2, issuer: "https://login.example.com",
    endpoints: FurtherEndpoints(challenge: url("https://login.example.com/challenge")),
    authentication: .attestation(.pop), dpop: .off)

  /// What a challenge endpoint answers that is none.
  enum Fault: CaseIterable {
    case status, lost, malformed, tooLarge, tooLong, redirect, unreachable

    func answer() throws(TransportError) -> HTTPResponse {
      switch self {
      case .status: return .json("", status: 500)
      case .lost: throw .lost("reset")
      case .malformed: return .json("no JSON")
      case .tooLarge: return .json(String(repeating: " ", count: 300_000))
      case .tooLong: return .json(#"{"attestation_challenge":"\#(String(repeating: "c", count: 2000))"}"#)
      case .redirect: return .json("", status: 302)
      case .unreachable: throw .unreachable("no route")
      }
    }
  }

  private func session(
    remaining: TimeInterval, _ answer: @escaping ScriptedTransport.Answer
  ) -> (AccountSession, MemoryStore, ScriptedTransport) {
    let bench = Bench(ScriptedTransport(answer))
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: remaining, provider: Self.provider))
    let client = ProviderClient(provider: Self.provider, dependencies: bench.dependencies(SampleAttester()))
    return (AccountSession(account: "work", client: client, store: store), store, bench.transport)
  }

  @Test(
    "C-043 After a fault of the challenge endpoint the refresh token is what it was, and the next call sends it",
    arguments: Fault.allCases)
  func challengeFault(fault: Fault) async throws {
    let isMended = Watched(false)
    let (session, store, transport) = session(remaining: 0) { request, number throws(TransportError) in
      guard request.url.path == "/challenge" else { return .tokens(number) }
      return isMended.value ? .json(#"{"attestation_challenge":"c"}"#) : try fault.answer()
    }
    do throws(SessionError) {
      _ = try await session.tokens()
      Issue.record("a token without a challenge")
    } catch {
      #expect(error.code != "refresh_uncertain", "\(error)")
    }
    #expect(transport.count(of: "/token") == 0)
    #expect(store.stored?.refreshState == .settled && !store.writes.contains { $0.hasSuffix("sent") })
    isMended.update { $0 = true }
    #expect(try await session.tokens().tokens.accessToken.hasPrefix("access-"))
    #expect(transport.forms(to: "/token").map { $0["refresh_token"] } == ["refresh-0"])
  }

  @Test("While the token is valid, a fault of the challenge endpoint changes nothing", arguments: Fault.allCases)
  func stillValid(fault: Fault) async throws {
    let (session, store, transport) = session(remaining: 30) { _, _ throws(TransportError) in try fault.answer() }
    #expect(try await session.tokens().tokens.accessToken == "access-0")
    #expect(store.stored?.refreshState == .settled && transport.count(of: "/token") == 0)
  }

  @Test("A pause that the challenge endpoint asks for is kept")
  func pause() async throws {
    let (session, store, _) = session(remaining: 0) { _, _ in
      .json("", status: 503, [HTTPField("Retry-After", "9")])
    }
    await #expect(throws: SessionError.postponed(9)) { try await session.tokens() }
    #expect(store.stored?.refreshState.word == "paused")
  }

  @Test("A lost answer of the token endpoint stays uncertain")
  func lost() async throws {
    let (session, store, _) = session(remaining: 0) { request, _ throws(TransportError) in
      guard request.url.path == "/challenge" else { throw .lost("reset") }
      return .json(#"{"attestation_challenge":"c"}"#)
    }
    do throws(SessionError) { _ = try await session.tokens() } catch { #expect(error.code == "refresh_uncertain") }
    #expect(store.stored?.refreshState.word == "sent")
  }
}
