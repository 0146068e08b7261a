import AttestClient
import ByteCoding
import Foundation
import Wire
import Locking

/// A simulated gate with unique challenges and scripted answers.
final class ScriptedGate: HTTPTransport {
  enum Answer: Sendable {
    case status(Int, GateRefusalCode? = nil)
    case failure(TransportError)

    static let accepted = Answer.status(200)
  }

  private struct State {
    var requests: [HTTPRequest] = []
    var challengeAnswers: [Answer] = []
    var registrationAnswers: [Answer] = []
    var forwarded: [HTTPResponse] = []
    var tokens: [HTTPResponse] = []
    var nonces = 0
  }

  private let state = LockedValue(State())

  /// Creates a gate that returns the scripted answers in order, and then accepts every request.
  init(registrations: [Answer] = [], challenges: [Answer] = []) {
    state.withLock {
      $0.registrationAnswers = registrations
      $0.challengeAnswers = challenges
    }
  }

  var requests: [HTTPRequest] { state.withLock { $0.requests } }
  var registrations: [HTTPRequest] { requests.filter { $0.url.path.hasSuffix("/attest/register") } }
  var challengeCount: Int { requests.count { $0.url.path.hasSuffix("/attest/challenge") } }
  /// The requests to the server behind the gate.
  var forwarded: [HTTPRequest] { requests.filter { !$0.url.path.contains("/attest/") } }

  /// Answers the next requests to the server behind the gate with `responses`, and further ones with 204.
  func script(forwarded responses: [HTTPResponse]) { state.withLock { $0.forwarded = responses } }

  /// The requests for tokens.
  var tokenRequests: [HTTPRequest] { requests.filter { $0.url.path.hasSuffix("/attest/token") } }

  /// Answers the next requests for tokens with `responses`, and further ones with a token.
  func script(tokens responses: [HTTPResponse]) { state.withLock { $0.tokens = responses } }

  func script(registrations: [Answer]) { state.withLock { $0.registrationAnswers = registrations } }

  func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    await Task.yield()
    if !request.url.path.contains("/attest/") {
      return state.withLock { state in
        state.requests.append(request)
        return state.forwarded.isEmpty ? HTTPResponse(status: 204) : state.forwarded.removeFirst()
      }
    }
    if request.url.path.hasSuffix("/attest/token") {
      return state.withLock { state in
        state.requests.append(request)
        let body = #"{"access_token":"a.b.c","token_type":"DPoP","expires_in":90}"#
        return state.tokens.isEmpty ? HTTPResponse(status: 200, body: Array(body.utf8)) : state.tokens.removeFirst()
      }
    }
    let (answer, nonce) = state.withLock { state in
      state.requests.append(request)
      state.nonces += 1
      let nonce = Hex.encode([UInt8](repeating: UInt8(state.nonces % 256), count: 32))
      let answer =
        request.method == .get ? Self.next(&state.challengeAnswers) : Self.next(&state.registrationAnswers)
      return (answer, nonce)
    }
    switch answer {
    case .failure(let error): throw error
    case .status(200, _) where request.method == .get:
      return HTTPResponse(status: 200, body: Array(#"{"nonce":"\#(nonce)","expires":"1700000060000"}"#.utf8))
    case .status(let status, let code):
      let headers = code.map { [HTTPField(GateRefusal.codeHeader.lowercased(), $0.rawValue)] } ?? []
      return HTTPResponse(status: status, headers: headers, body: Array("no\n".utf8))
    }
  }

  private static func next(_ answers: inout [Answer]) -> Answer {
    answers.isEmpty ? .accepted : answers.removeFirst()
  }
}

/// A wall clock that changes only when a test advances it.
final class ManualClock: Sendable {
  private let instant = LockedValue(Timestamp(seconds: 1_700_000_000))
  var now: Timestamp { instant.withLock { $0 } }
  func advance(by duration: Duration) { instant.withLock { $0 = $0.advanced(by: duration) } }
}

/// A key record in memory. A test can make the next write fail.
final class FaultyKeyIDStore: KeyIDStore {
  private let record = LockedValue(KeyRecord())
  private let failures = LockedValue(0)

  func load() -> KeyRecord { record.withLock { $0 } }

  func save(_ record: KeyRecord) throws(KeyStoreError) {
    let fails = failures.withLock { count in
      defer { count = max(0, count - 1) }
      return count > 0
    }
    if fails { throw .unwritable("disk full") }
    self.record.withLock { $0 = record }
  }

  func failNextWrite() { failures.withLock { $0 = 1 } }
}
