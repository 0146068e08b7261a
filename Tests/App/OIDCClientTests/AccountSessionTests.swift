import Foundation
import Wire
import TestSupport
import Testing

@testable import OIDCClient

/// A bench with a stored account and its session.
private struct Signed: Sendable {
  let bench: Bench
  let store: MemoryStore
  let session: AccountSession

  init(
    _ transport: ScriptedTransport, remaining: TimeInterval = 0, refresh: String? = "refresh-0",
    state: RefreshState = .settled, provider: IdentityProvider = .plain(), user: User? = nil, idToken: String? = nil
  ) {
    bench = Bench(transport)
    store = MemoryStore(
      .sample(
        at: bench.clock.now, remaining: remaining, refresh: refresh, state: state, provider: provider, user: user,
        idToken: idToken))
    session = AccountSession(account: "work", client: bench.client(provider), store: store)
  }

  /// The access token, or the code of the error.
  func outcome(rejecting rejected: String? = nil) async -> String {
    do throws(SessionError) { return try await session.tokens(rejecting: rejected).tokens.accessToken } catch {
      return error.code
    }
  }

  /// The outcomes of many tasks, which all ask before `door` is opened.
  func outcomes(
    of count: Int, rejecting rejected: String? = nil, joining isFlying: Bool = false, until door: Door
  ) async throws -> [String] {
    let before = store.content.value.reads
    let tasks = (0..<count).map { _ in Task { await outcome(rejecting: rejected) } }
    // Each reads the store before it joins the flight, and a flight reads it three times before its request.
    let reads = before + count + (isFlying ? 0 : 3)
    _ = try await store.content.wait(for: "\(count) callers") { $0.reads >= reads ? true : nil }
    door.open()
    var outcomes: [String] = []
    for task in tasks { outcomes.append(await task.value) }
    return outcomes
  }
}

@Suite("The session of an account", .timeLimit(.minutes(2)))
struct AccountSessionTests {
  private static let unreachable = Result<HTTPResponse, TransportError>.failure(.unreachable("no route"))
  private static let lost = Result<HTTPResponse, TransportError>.failure(.lost("reset"))

  // MARK: One refresh

  @Test("C-012 A hundred tasks share one refresh", arguments: [nil, "access-0"])
  func single(rejected: String?) async throws {
    let door = Door()
    let signed = Signed(
      ScriptedTransport { _, number throws(TransportError) in
        await door.pass()
        return .tokens(number)
      }, remaining: rejected == nil ? 59 : 300)
    let outcomes = try await signed.outcomes(of: 100, rejecting: rejected, until: door)
    #expect(outcomes.count == 100 && Set(outcomes) == ["access-1"])
    #expect(
      signed.bench.transport.forms == [
        ["grant_type": "refresh_token", "refresh_token": "refresh-0", "client_id": "app"]
      ])
    // Those who still have the old token come late, and find it renewed.
    #expect(await signed.outcome(rejecting: "access-0") == "access-1")
    #expect(signed.bench.transport.sent.count == 1)
  }

  @Test("A token with a minute left is used without a request, and without a lock")
  func fresh() async throws {
    let signed = Signed(ScriptedTransport([]), remaining: 60)
    signed.store.hold()
    #expect(await signed.outcome() == "access-0")
    #expect(await signed.outcome(rejecting: "another") == "access-0")
    #expect(signed.store.content.value.locks == 0)
  }

  @Test("A caller that is cancelled does not break the refresh of the others")
  func cancelled() async throws {
    let door = Door()
    let signed = Signed(
      ScriptedTransport { _, number throws(TransportError) in
        await door.pass()
        if Task.isCancelled { throw .lost("cancelled") }
        return .tokens(number)
      })
    let first = Task { await signed.outcome() }
    _ = try await signed.bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    first.cancel()
    let outcomes = try await signed.outcomes(of: 10, joining: true, until: door)
    #expect(Set(outcomes) == ["access-1"])
    #expect(await first.value == "access-1")
    #expect(signed.bench.transport.sent.count == 1)
  }

  @Test("Callers whose token was rejected during a refresh that brings it again share the next refresh")
  func rejectedDuringFlight() async throws {
    let door = Door()
    // The first flight finds no provider and falls back to the old token, which is still valid for some seconds.
    let signed = Signed(
      ScriptedTransport { _, number throws(TransportError) in
        await door.pass()
        if number <= 3 { throw .unreachable("no route") }
        return .tokens(number)
      }, remaining: 30)
    let first = Task { await signed.outcome() }
    _ = try await signed.bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    let before = signed.store.content.value.reads
    let others = (0..<100).map { _ in Task { await signed.outcome(rejecting: "access-0") } }
    _ = try await signed.store.content.wait(for: "the callers") { $0.reads >= before + 100 ? true : nil }
    door.open()
    #expect(await first.value == "access-0")
    for other in others { #expect(await other.value == "access-4") }
    // Each flight takes the lock once.
    #expect(signed.bench.transport.sent.count == 4 && signed.store.content.value.locks == 2)
  }

  @Test("C-014 The store says sent before the request, and has the new tokens before they are returned")
  func order() async throws {
    let store = Watched<MemoryStore?>(nil)
    let seen = Watched<[String]>([])
    let signed = Signed(
      ScriptedTransport { _, number throws(TransportError) in
        seen.update { $0 = store.value?.writes ?? [] }
        return .tokens(number)
      })
    store.update { $0 = signed.store }
    #expect(await signed.outcome() == "access-1")
    #expect(seen.value == ["access-0 sent"])
    #expect(signed.store.writes == ["access-0 sent", "access-1 settled"])
    #expect(signed.store.stored?.tokens.refreshToken == "refresh-1")
    #expect(signed.store.content.value.held.isEmpty)
  }

  @Test("A store that fails lets no request out")
  func storeFails() async throws {
    let signed = Signed(ScriptedTransport([.success(.tokens(1))]))
    signed.store.content.update { $0.fault = .damaged("file") }
    #expect(await signed.outcome() == "store_unusable")
    #expect(signed.bench.transport.sent.isEmpty && signed.store.content.value.held.isEmpty)
  }

  @Test("New tokens that cannot be stored are not returned")
  func storeFailsLater() async throws {
    let store = Watched<MemoryStore?>(nil)
    let signed = Signed(
      ScriptedTransport { _, number throws(TransportError) in
        store.value?.content.update { $0.fault = .file("disk", reason: "full") }
        return .tokens(number)
      })
    store.update { $0 = signed.store }
    #expect(await signed.outcome() == "store_unusable")
    signed.store.content.update { $0.fault = nil }
    #expect(signed.store.stored?.refreshState.word == "sent")
    #expect(signed.store.content.value.held.isEmpty)
  }

  // MARK: What a failure leaves

  @Test("A lost answer is uncertain, the next call tries once, and a refusal then deletes nothing")
  func lostAnswer() async throws {
    let signed = Signed(ScriptedTransport([Self.lost, .success(.refusal("invalid_grant"))]))
    #expect(await signed.outcome() == "refresh_uncertain")
    #expect(signed.store.stored?.refreshState.word == "sent" && signed.bench.transport.sent.count == 1)
    #expect(await signed.outcome() == "answer_was_lost")
    #expect(signed.store.stored?.refreshState.word == "lost invalid_grant")
    #expect(signed.store.stored?.tokens.refreshToken == "refresh-0")
    #expect(await signed.outcome() == "answer_was_lost" && signed.bench.transport.sent.count == 2)
  }

  @Test("A lost answer is forgotten if the provider still accepts the token")
  func lostAnswerAccepted() async throws {
    let signed = Signed(ScriptedTransport([Self.lost, .success(.tokens(2))]))
    #expect(await signed.outcome() == "refresh_uncertain")
    #expect(await signed.outcome() == "access-2")
    #expect(signed.store.stored?.refreshState == .settled)
  }

  @Test("What was uncertain stays uncertain while nothing else is known", arguments: [429, 503, 401])
  func staysUncertain(status: Int) async throws {
    let answer = HTTPResponse.json("", status: status, [HTTPField("Retry-After", "5")])
    let signed = Signed(ScriptedTransport([.success(answer)]), state: .sent(at: .distantPast))
    _ = await signed.outcome()
    #expect(signed.store.stored?.refreshState == .sent(at: .distantPast))
  }

  @Test("A refused refresh token is deleted, and no further request is sent")
  func refused() async throws {
    let signed = Signed(ScriptedTransport([.success(.refusal("invalid_grant"))]))
    #expect(await signed.outcome() == "sign_in_needed")
    #expect(signed.store.stored?.tokens.refreshToken == nil)
    #expect(signed.store.stored?.tokens.accessToken == "access-0")
    #expect(await signed.outcome() == "sign_in_needed" && signed.bench.transport.sent.count == 1)
  }

  @Test("A refused account is deleted, unless another process has signed in since")
  func deleteRefused() async throws {
    let signed = Signed(ScriptedTransport([.success(.refusal("invalid_grant"))]))
    #expect(await signed.outcome() == "sign_in_needed")
    let refused = try #require(signed.store.stored)
    try signed.store.write(.sample(at: signed.bench.clock.now), as: "work")
    try await signed.session.deleteRefused()
    #expect(signed.store.stored?.tokens.refreshToken == "refresh-0")
    try signed.store.write(refused, as: "work")
    try await signed.session.deleteRefused()
    #expect(signed.store.stored == nil && signed.store.content.value.held.isEmpty)
  }

  @Test(
    "C-043 What is no error of OAuth says nothing about the refresh token, whatever its status",
    arguments: [
      "<html><h1>400 Bad Request</h1>Request Header Or Cookie Too Large</html>", #"{"message":"Bad request"}"#,
      #"{"error":{"code":400,"message":"invalid_grant"}}"#, "", "[]", #"{"error":null}"#,
      #"{"error":"Invalid Grant"}"#, #"{"error":"invalid_grant "}"#,
    ])
  func proxyPage(body: String) async throws {
    for status in [400, 401, 403, 404] {
      let signed = Signed(ScriptedTransport([.success(.json(body, status: status)), .success(.tokens(2))]))
      let found = await signed.outcome()
      #expect(found != "sign_in_needed" && signed.store.stored?.tokens.refreshToken == "refresh-0", "\(status)")
      #expect(signed.store.stored?.refreshState == .settled)
      #expect(await signed.outcome() == "access-2")
    }
  }

  @Test("A refusal of the client leaves the token alone")
  func clientRefused() async throws {
    let signed = Signed(ScriptedTransport([.success(.refusal("invalid_client", status: 401))]))
    #expect(await signed.outcome() == "invalid_client")
    #expect(signed.store.stored?.refreshState == .settled && signed.store.stored?.tokens.refreshToken == "refresh-0")
  }

  @Test(
    "C-043 An unreachable provider is asked three times, after pauses, and then the old token serves while it is valid")
  func unreachable() async throws {
    let signed = Signed(ScriptedTransport([Self.unreachable, Self.unreachable, Self.unreachable]), remaining: 30)
    #expect(await signed.outcome() == "access-0")
    #expect(signed.bench.transport.sent.count == 3)
    let pauses = signed.bench.clock.pauses.value
    #expect(pauses.count == 2 && pauses[0] <= .milliseconds(250) && pauses[1] <= .milliseconds(500))
    #expect(signed.store.stored?.refreshState == .settled)
    signed.bench.clock.advance(by: 30)
    #expect(await signed.outcome() == "refresh_uncertain" && signed.bench.transport.sent.count == 4)
  }

  @Test("An unreachable provider and an expired token are an error")
  func unreachableAndExpired() async throws {
    let signed = Signed(ScriptedTransport([Self.unreachable, Self.unreachable, Self.unreachable]))
    #expect(await signed.outcome() == "provider_unreachable")
    let again = Signed(ScriptedTransport([Self.unreachable, .success(.tokens(2))]))
    #expect(await again.outcome() == "access-2")
  }

  @Test(
    "C-043 Retry-After of 429 and 503 is respected",
    arguments: [(429, "120", 120), (503, "120", 120), (429, "soon", 30)])
  func paused(status: Int, field: String, seconds: Int) async throws {
    let busy = HTTPResponse.json("", status: status, [HTTPField("retry-after", field)])
    let signed = Signed(ScriptedTransport([.success(busy), .success(.tokens(2))]))
    #expect(await signed.outcome() == "provider_busy")
    signed.bench.clock.advance(by: TimeInterval(seconds) - 1)
    #expect(await signed.outcome() == "provider_busy" && signed.bench.transport.sent.count == 1)
    signed.bench.clock.advance(by: 1)
    #expect(await signed.outcome() == "access-2")
  }

  @Test(
    "Retry-After may be a date, from the Date of the same answer on, and is at most a day",
    arguments: [
      ("120", 120), ("86400", 86_400), ("86401", 86_400), ("99999999999999999999", 86_400),
      ("Wed, 25 Nov 2026 00:01:40 GMT", 100), ("Fri, 27 Nov 2026 00:00:00 GMT", 86_400),
      ("Tue, 24 Nov 2026 23:59:59 GMT", 0),
    ])
  func pauses(field: String, seconds: Int) {
    let date = HTTPField("Date", "Wed, 25 Nov 2026 00:00:00 GMT")
    #expect(HTTPResponse.json("", status: 429, [date, HTTPField("Retry-After", field)]).retryAfter == seconds)
  }

  @Test(
    "A Retry-After that is malformed, or a date without another one to count from, pauses for the usual time",
    arguments: [
      "-1", "+5", "1e3", "", "Wed, 25 Nov 2026 00:00:00 GMT", "Wed, 25 Nov 2026 00:00:00 CET",
      "Wed, 31 Feb 2026 00:00:00 GMT",
    ])
  func strangePause(field: String) async throws {
    let busy = HTTPResponse.json("", status: 429, [HTTPField("Retry-After", field)])
    let signed = Signed(ScriptedTransport([.success(busy)]))
    #expect(await signed.outcome() == "provider_busy")
    #expect(signed.store.stored?.refreshState == .paused(until: signed.bench.clock.now.addingTimeInterval(30)))
  }

  @Test("An answer that may have been an exchange is uncertain", arguments: [500, 502, 504])
  func serverError(status: Int) async throws {
    let signed = Signed(ScriptedTransport([.success(.json("", status: status))]))
    #expect(await signed.outcome() == "refresh_uncertain")
    #expect(signed.store.stored?.refreshState.word == "sent" && signed.bench.transport.sent.count == 1)
  }

  // MARK: What an answer brings

  @Test("An answer without a refresh token, or with an empty one, keeps the old one", arguments: [true, false])
  func keeps(isEmpty: Bool) async throws {
    let more = isEmpty ? #","refresh_token":"","id_token":"""# : ""
    let answer = #"{"access_token":"access-1","token_type":"bearer","expires_in":"300"\#(more)}"#
    let signed = Signed(ScriptedTransport([.success(.json(answer))]))
    #expect(await signed.outcome() == "access-1")
    #expect(signed.store.stored?.tokens.refreshToken == "refresh-0" && signed.store.stored?.tokens.scope == "files")
  }

  @Test("A refresh with the key of an earlier sign-in brings a bearer token also where the entry asks for no key now")
  func bearerWithKey() async throws {
    let bench = Bench([.success(.tokens(1))])
    let key = DPoPKey()
    let store = MemoryStore(.sample(at: bench.clock.now, remaining: 0, dpopKey: key))
    let session = AccountSession(account: "work", client: bench.client(.plain(dpop: .off)), store: store)
    #expect(try await session.tokens().tokens.accessToken == "access-1")
    #expect(store.stored?.tokens.refreshToken == "refresh-1" && store.stored?.isBound == false)
    // The refresh token may be bound to it.
    #expect(store.stored?.dpopKey == key && bench.transport.sent.first?.value(of: "DPoP") != nil)
  }

  private static let ada = User(id: "ada", username: "ada", email: nil, displayName: nil)

  @Test("A refreshed ID token of another user is refused, and of the same user accepted", arguments: ["ada", "eve"])
  func subject(name: String) async throws {
    let minter = Minter()
    let signed = Signed(
      Discovery.transport(keys: { minter.jwks }) { _, number throws(TransportError) in
        .tokens(1, idToken: (try? minter.token(at: ManualClock().now, subject: name)) ?? "")
      }, provider: .discovered(), user: Self.ada, idToken: "old")
    #expect(await signed.outcome() == (name == "ada" ? "access-1" : "refresh_uncertain"))
    #expect(signed.store.stored?.user == Self.ada)
  }

  @Test(
    "A refresh that answers with the ID token of the sign-in brings its tokens, and the ID token stays",
    arguments: ["same", "older", "older with its at_hash", "of another user", "older by another key", "in the future"])
  func oldIDToken(kind: String) async throws {
    let minter = Minter()
    let begin = ManualClock().now
    let stored = try minter.token(at: begin)
    // The next one is issued at the same time, and is another text.
    let answered = Watched(stored)
    let signed = Signed(
      Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in .tokens(1, idToken: answered.value) },
      provider: .discovered(), user: Self.ada, idToken: stored)
    signed.bench.clock.advance(by: 3600)
    let later = signed.bench.clock.now
    switch kind {
    case "same": break
    case "older": answered.update { $0 = (try? minter.token(at: begin.addingTimeInterval(1))) ?? "" }
    case "older with its at_hash":
      answered.update { $0 = (try? minter.token(at: begin, more: #","at_hash":"AAAAAAAAAAAAAAAAAAAAAA""#)) ?? "" }
    case "of another user": answered.update { $0 = (try? minter.token(at: begin, subject: "eve")) ?? "" }
    case "older by another key": answered.update { $0 = (try? Minter().token(at: begin)) ?? "" }
    default: answered.update { $0 = (try? minter.token(at: later.addingTimeInterval(301))) ?? "" }
    }
    let refusal = [
      "of another user": "refresh_uncertain", "older by another key": "refresh_uncertain",
      "in the future": "wrong_issue_time",
    ][kind]
    let isUncertain = refusal == "refresh_uncertain"
    #expect(await signed.outcome() == refusal ?? "access-1")
    #expect(signed.store.stored?.tokens.idToken == stored && signed.store.stored?.user == Self.ada)
    // The refresh token of an answer whose times are not accepted is the next one all the same.
    #expect(signed.store.stored?.tokens.refreshToken == (isUncertain ? "refresh-0" : "refresh-1"))
    #expect(signed.store.stored?.tokens.accessToken == (refusal == nil ? "access-1" : "access-0"))
    #expect(signed.store.stored?.refreshState.word == (isUncertain ? "sent" : "settled"))
  }

  @Test("The ID token of the sign-in stays, and one of a refresh has its nonce or none", arguments: [nil, "n", "evil"])
  func nonce(nonce: String?) async throws {
    let minter = Minter()
    let begin = ManualClock().now
    let stored = try minter.token(at: begin, more: #","nonce":"n""#)
    let signed = Signed(
      Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in
        let more = nonce.map { #","nonce":"\#($0)""# } ?? ""
        return .tokens(1, idToken: (try? minter.token(at: begin.addingTimeInterval(3600), more: more)) ?? "")
      },
      provider: .discovered(), user: Self.ada, idToken: stored)
    signed.bench.clock.advance(by: 3600)
    #expect(await signed.outcome() == (nonce == "evil" ? "refresh_uncertain" : "access-1"))
    #expect(signed.store.stored?.tokens.idToken == stored)
  }

  @Test("A fresh ID token of a refresh that is for another access token is refused")
  func otherHash() async throws {
    let minter = Minter()
    let signed = Signed(
      Discovery.transport(keys: { minter.jwks }) { _, _ throws(TransportError) in
        .tokens(
          1, idToken: try? minter.token(at: ManualClock().now, more: #","at_hash":"AAAAAAAAAAAAAAAAAAAAAA""#))
      }, provider: .discovered(), user: Self.ada, idToken: "old")
    #expect(await signed.outcome() == "refresh_uncertain")
  }

  // MARK: Tokens without a lifetime

  @Test(
    "A token without a lifetime and a refresh token is used until a service refuses it",
    arguments: ["", #","expires_in":0"#, #","expires_in":"0""#, #","expires_in":null,"refresh_token":"""#])
  func withoutLifetime(more: String) async throws {
    let answer = #"{"access_token":"access-1","token_type":"bearer"\#(more)}"#
    let bench = Bench([.success(.json(answer))])
    let client = bench.client(.plain(allowsPasswordGrant: true))
    let account = try await client.signIn(with: Credentials(username: "ada", password: "x"))
    let store = MemoryStore(account)
    let session = AccountSession(account: "work", client: client, store: store)
    for seconds in [0, 3601, 86_400 * 365, -86_400 * 800] as [TimeInterval] {
      bench.clock.advance(by: seconds)
      #expect(try await session.tokens().tokens.accessToken == "access-1")
    }
    await #expect(throws: SessionError.signInNeeded(.noRefreshToken)) {
      try await session.tokens(rejecting: "access-1")
    }
    #expect(bench.transport.sent.count == 1 && account.isOpenEnded && account.expiresAt == .distantFuture)
  }

  @Test("A token without a lifetime and with a refresh token is renewed after an hour, and not before")
  func renewedAfterAnHour() async throws {
    let answer = #"{"access_token":"access-1","token_type":"bearer","expires_in":0,"refresh_token":"r"}"#
    let bench = Bench([.success(.json(answer)), .success(.tokens(2))])
    let client = bench.client(.plain(allowsPasswordGrant: true))
    let account = try await client.signIn(with: Credentials(username: "ada", password: "x"))
    #expect(!account.isOpenEnded)
    let session = AccountSession(account: "work", client: client, store: MemoryStore(account))
    bench.clock.advance(by: 3500)
    #expect(try await session.tokens().tokens.accessToken == "access-1")
    bench.clock.advance(by: 100)
    #expect(try await session.tokens().tokens.accessToken == "access-2")
  }

  @Test("A refresh token that was refused ends the session of a token without a lifetime")
  func refusedWithoutLifetime() async throws {
    let answer = #"{"access_token":"access-1","token_type":"bearer","refresh_token":"r"}"#
    let bench = Bench([.success(.json(answer)), .success(.refusal("invalid_grant"))])
    let client = bench.client(.plain(allowsPasswordGrant: true))
    let account = try await client.signIn(with: Credentials(username: "ada", password: "x"))
    let store = MemoryStore(account)
    let session = AccountSession(account: "work", client: client, store: store)
    bench.clock.advance(by: 3600)
    await #expect(throws: SessionError.signInNeeded(.refused("invalid_grant"))) { try await session.tokens() }
    #expect(store.stored?.isOpenEnded == false)
  }

  @Test func `what is stored says whether the lifetime was named`() throws {
    let tokens = AuthTokens(
      accessToken: "a", refreshToken: nil, tokenType: "Bearer", expiresIn: 3600, scope: nil, idToken: nil)
    for isNamed in [true, false] {
      let account = StoredAccount(
        providerID: "work", issuer: nil, clientID: "app", tokens: tokens, user: nil, issuedAt: ManualClock().now,
        namesLifetime: isNamed)
      let read = try JSONDecoder().decode(StoredAccount.self, from: JSONEncoder().encode(account))
      #expect(read.namesLifetime == isNamed && read.isOpenEnded == !isNamed && read.expiresAt == account.expiresAt)
    }
  }

  @Test("A refresh token is not sent before the keys are there, and never again after new tokens were issued")
  func keysFirst() async throws {
    let minter = Minter()
    let isDown = Watched(true)
    let signed = Signed(
      ScriptedTransport { request, number throws(TransportError) in
        switch request.url.path {
        case Discovery.path: return .json(Discovery.document())
        case "/keys":
          if isDown.value { throw .unreachable("no route") }
          return .json(minter.jwks)
        default:
          // From now on the keys cannot be fetched, and the token is under another key.
          isDown.update { $0 = true }
          return .tokens(1, idToken: (try? Minter("k2").token(at: ManualClock().now)) ?? "")
        }
      }, provider: .discovered(), user: Self.ada, idToken: "old")
    #expect(await signed.outcome() == "provider_unreachable")
    #expect(signed.bench.transport.count(of: "/token") == 0)
    #expect(signed.store.stored?.refreshState == .settled)
    isDown.update { $0 = false }
    #expect(await signed.outcome() == "unknown_key")
    #expect(signed.bench.transport.count(of: "/token") == 1)
    #expect(signed.store.stored?.refreshState == .settled)
  }

  @Test("Of new tokens whose keys cannot be fetched, the refresh token is kept")
  func keysLater() async throws {
    let signed = Signed(
      ScriptedTransport { request, number throws(TransportError) in
        switch request.url.path {
        case Discovery.path: return .json(Discovery.document())
        case "/keys": throw .unreachable("no route")
        default: return .tokens(1, idToken: (try? Minter().token(at: ManualClock().now)) ?? "")
        }
      }, provider: .discovered(), user: Self.ada)
    #expect(await signed.outcome() == "provider_unreachable")
    #expect(signed.store.stored?.tokens.refreshToken == "refresh-1")
    #expect(signed.bench.transport.count(of: "/token") == 1)
  }

  @Test("A discovery that fails says nothing against the refresh token", arguments: [500, 404, 200])
  func discoveryFails(status: Int) async throws {
    let signed = Signed(ScriptedTransport([.success(.json("", status: status))]), provider: .discovered())
    #expect(await signed.outcome() == (status == 200 ? "answer_malformed" : "server_error"))
    #expect(signed.store.stored?.refreshState == .settled)
    #expect(!signed.store.writes.contains("access-0 sent"))
  }

  // MARK: Other processes

  @Test("While another process refreshes, nothing is sent, and its tokens are used")
  func otherProcess() async throws {
    let signed = Signed(ScriptedTransport([]))
    signed.store.hold()
    let now = signed.bench.clock.now
    signed.store.content.update {
      $0.onLock = { number, content in
        guard number == 3 else { return }
        content.accounts["work"] = .sample(at: now)
        content.held = []
      }
    }
    #expect(await signed.outcome() == "access-0")
    #expect(signed.store.content.value.locks == 3)
    #expect(signed.bench.transport.sent.isEmpty)
  }

  @Test("C-012 Twenty processes with one folder send one request")
  func processes() async throws {
    try await Places.withTemporaryFolder { folder in
      let transport = ScriptedTransport { _, number throws(TransportError) in .tokens(number) }
      func store() -> TokenFolder { TokenFolder(path: folder + "/tokens", key: TokenKeyFile(path: folder + "/key")) }
      try store().write(.sample(at: ManualClock().now, remaining: 0), as: "work")
      let tasks = (0..<20).map { _ in
        let session = AccountSession(account: "work", client: Bench(transport).client(), store: store())
        return Task { try await session.tokens().tokens.accessToken }
      }
      for task in tasks { #expect(try await task.value == "access-1") }
      #expect(transport.sent.count == 1)
    }
  }

  @Test("C-012 Twenty processes send one request where a token lives for a minute or less", arguments: [60, 20])
  func shortLifetime(seconds: Int) async throws {
    try await Places.withTemporaryFolder { folder in
      let transport = ScriptedTransport { _, number throws(TransportError) in .tokens(number, lifetime: seconds) }
      func store() -> TokenFolder { TokenFolder(path: folder + "/tokens", key: TokenKeyFile(path: folder + "/key")) }
      try store().write(.sample(at: ManualClock().now, remaining: 0), as: "work")
      let first = try #require(try store().lock("work"))
      let door = Door()
      let benches = (0..<20).map { _ in Bench(transport) }
      for bench in benches { bench.clock.stop(at: door) }
      let tasks = benches.map { bench in
        let session = AccountSession(account: "work", client: bench.client(), store: store())
        return Task { try await session.tokens().tokens.accessToken }
      }
      // Each has read the store and waits for the lock.
      for bench in benches {
        _ = try await bench.clock.pauses.wait(for: "a process to wait") { $0.isEmpty ? nil : true }
      }
      first.release()
      door.open()
      for task in tasks { #expect(try await task.value == "access-1") }
      #expect(transport.sent.count == 1)
    }
  }

  @Test(
    "A process that waited takes what another has stored meanwhile, unless it has expired or was rejected",
    arguments: [(10, nil, "access-9"), (0, nil, "access-1"), (10, "access-9", "access-1"), (10, "x", "access-9")]
      as [(TimeInterval, String?, String)])
  func takesStored(remaining: TimeInterval, rejected: String?, expected: String) async throws {
    let signed = Signed(ScriptedTransport([.success(.tokens(1))]))
    signed.store.hold()
    let tokens = AuthTokens(
      accessToken: "access-9", refreshToken: "refresh-9", tokenType: "Bearer", expiresIn: 300, scope: nil, idToken: nil)
    let provider = IdentityProvider.plain()
    let other = StoredAccount(
      providerID: provider.id, issuer: nil, clientID: provider.clientID, tokens: tokens, user: nil,
      issuedAt: signed.bench.clock.now.addingTimeInterval(remaining - 300))
    signed.store.content.update {
      $0.onLock = { number, content in
        guard number == 2 else { return }
        content.accounts["work"] = other
        content.held = []
      }
    }
    #expect(await signed.outcome(rejecting: rejected) == expected)
    #expect(signed.bench.transport.sent.count == (expected == "access-1" ? 1 : 0))
  }

  @Test(
    "A token is renewed when half of its lifetime remains, and at most a minute",
    arguments: [(60, 30), (61, 30.5), (90, 45), (120, 60), (3600, 60)] as [(TimeInterval, TimeInterval)])
  func margin(lifetime: TimeInterval, margin: TimeInterval) {
    let now = ManualClock().now
    let tokens = AuthTokens(
      accessToken: "a", refreshToken: "r", tokenType: "Bearer", expiresIn: lifetime, scope: nil, idToken: nil)
    func decision(_ remaining: TimeInterval) -> RefreshDecision {
      RefreshDecision(
        StoredAccount(
          providerID: "work", issuer: nil, clientID: "app", tokens: tokens, user: nil,
          issuedAt: now.addingTimeInterval(remaining - lifetime)), at: now)
    }
    #expect(decision(lifetime) == .use && decision(margin) == .use && decision(margin - 0.1) == .refresh)
  }

  @Test("Another process that does not finish is an error after a minute, and its lock stays")
  func busy() async throws {
    let signed = Signed(ScriptedTransport([]))
    signed.store.hold()
    let begin = signed.bench.clock.now
    #expect(await signed.outcome() == "account_locked")
    #expect((60...61).contains(signed.bench.clock.now.timeIntervalSince(begin)))
    #expect(signed.store.content.value.held == ["work"] && signed.bench.transport.sent.isEmpty)
    let pauses = signed.bench.clock.pauses.value
    #expect(
      pauses.allSatisfy { (Duration.milliseconds(10)...(.milliseconds(42))).contains($0) } && Set(pauses).count > 5)
  }

  @Test("A cancelled logout does not spin while another process holds the lock")
  func cancelledWait() async throws {
    let signed = Signed(ScriptedTransport([]))
    signed.store.hold()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return await Result { () async throws(SessionError) in try await signed.session.logOut() }
    }
    task.cancel()
    #expect(await task.value == .failure(.busy))
    #expect(signed.bench.clock.pauses.value.isEmpty)
  }

  @Test("Tokens of another client, issuer or provider are not sent")
  func otherClient() async throws {
    for provider in [
      IdentityProvider.plain(clientID: "other"), .plain(issuer: "https://login.example.com"), .plain(id: "home"),
    ] {
      let signed = Signed(ScriptedTransport([.success(.tokens(1))]), provider: .plain())
      let session = AccountSession(account: "work", client: signed.bench.client(provider), store: signed.store)
      await #expect(throws: SessionError.otherClient) { try await session.tokens() }
      #expect(signed.bench.transport.sent.isEmpty)
    }
  }

  @Test("Without an account there are no tokens")
  func missing() async throws {
    let signed = Signed(ScriptedTransport([]))
    try signed.store.delete("work")
    #expect(await signed.outcome() == "not_signed_in")
  }

  // MARK: Logout

  @Test("C-026 A logout revokes the refresh token and deletes the account")
  func logout() async throws {
    let signed = Signed(ScriptedTransport([.success(.json(""))]))
    #expect(try await signed.session.logOut() == nil)
    #expect(signed.store.stored == nil && signed.store.content.value.held.isEmpty)
    #expect(
      signed.bench.transport.forms
        == [["token": "refresh-0", "token_type_hint": "refresh_token", "client_id": "app"]])
    #expect(signed.bench.transport.sent.first?.url.path == "/revoke")
  }

  @Test("C-026 A logout sends tokens of another client, issuer or provider nowhere, deletes them, and says so")
  func logoutElsewhere() async throws {
    for provider in [
      IdentityProvider.plain(clientID: "other"), .plain(issuer: "https://login.example.com"), .plain(id: "home"),
    ] {
      let signed = Signed(ScriptedTransport([.success(.json(""))]), provider: .plain())
      let session = AccountSession(account: "work", client: signed.bench.client(provider), store: signed.store)
      #expect(try await session.logOut() != nil)
      #expect(signed.store.stored == nil && signed.bench.transport.sent.isEmpty)
    }
  }

  @Test("C-026 A logout deletes the account even if the provider cannot be reached or refuses")
  func logoutUnreachable() async throws {
    for answer in [Self.unreachable, Self.lost, .success(.refusal("invalid_client", status: 401))] {
      let signed = Signed(ScriptedTransport([answer]))
      #expect(try await signed.session.logOut() != nil)
      #expect(signed.store.stored == nil)
    }
    let withoutRefresh = Signed(ScriptedTransport([.success(.json("", status: 204))]), refresh: nil)
    #expect(try await withoutRefresh.session.logOut() == nil)
    #expect(withoutRefresh.bench.transport.forms.first?["token_type_hint"] == "access_token")
  }

  @Test("A logout waits for a refresh, and nothing is stored after it", arguments: [false, true])
  func logoutDuringRefresh(isKeychain: Bool) async throws {
    let (door, pauses) = (Door(), Door())
    let bench = Bench(
      ScriptedTransport { request, number throws(TransportError) in
        if request.url.path == "/token" { await door.pass() }
        return .tokens(number)
      })
    let store: any TokenStore = isKeychain ? TokenKeychain(items: FakeKeychain()) : MemoryStore()
    try store.write(.sample(at: bench.clock.now, remaining: 0), as: "work")
    let session = AccountSession(account: "work", client: bench.client(), store: store)
    let refresh = Task { try? await session.tokens() }
    _ = try await bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    bench.clock.stop(at: pauses)
    let logout = Task { try await session.logOut() }
    _ = try await bench.clock.pauses.wait(for: "the logout to wait") { $0.isEmpty ? nil : true }
    door.open()
    _ = await refresh.value
    pauses.open()
    #expect(try await logout.value == nil)
    #expect(try store.account("work") == nil)
    // What is revoked is the token that the refresh brought.
    #expect(bench.transport.forms(to: "/revoke").map { $0["token"] } == ["refresh-1"])
  }

  @Test(
    "An account that is deleted during its refresh is not stored again, and its newest tokens are revoked",
    arguments: [("tokens", "refresh-1"), ("unreachable", "refresh-0"), ("lost", "refresh-0"), ("refused", "access-0")])
  func deletedDuringRefresh(answer: String, revoked: String) async throws {
    let door = Door()
    let signed = Signed(
      ScriptedTransport { request, _ throws(TransportError) in
        guard request.url.path == "/token" else { return .json("") }
        await door.pass()
        switch answer {
        case "unreachable": throw .unreachable("no route")
        case "lost": throw .lost("reset")
        case "refused": return .refusal("invalid_grant")
        default: return .tokens(1)
        }
      })
    let refresh = Task { await signed.outcome() }
    _ = try await signed.bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    // It waits a minute for the lock.
    await signed.session.signOut()
    #expect(signed.store.stored == nil)
    door.open()
    #expect(await refresh.value == "not_signed_in")
    #expect(signed.store.stored == nil && signed.store.content.value.held.isEmpty)
    #expect(signed.bench.transport.forms(to: "/revoke").map { $0["token"] } == [revoked])
    #expect(signed.bench.transport.count(of: "/token") == 1)
  }

  @Test("An account that is deleted before its refresh token is sent sends no request for tokens, and is revoked")
  func deletedBeforeRefresh() async throws {
    let door = Door()
    let signed = Signed(
      ScriptedTransport { request, _ throws(TransportError) in
        guard request.url.path == Discovery.path else { return .json("") }
        await door.pass()
        return .json(Discovery.document())
      }, provider: .discovered())
    let refresh = Task { await signed.outcome() }
    _ = try await signed.bench.transport.requests.wait(for: "the request") { $0.isEmpty ? nil : true }
    try signed.store.delete("work")
    door.open()
    #expect(await refresh.value == "not_signed_in")
    #expect(signed.store.stored == nil && signed.bench.transport.count(of: "/token") == 0)
    #expect(signed.bench.transport.forms(to: "/revoke").map { $0["token"] } == ["refresh-0"])
  }
}

extension Result where Success: Sendable {
  fileprivate init(_ body: () async throws(Failure) -> Success) async {
    do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
