import ByteCoding
import Crypto
import Foundation
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("Approval by another device")
struct PushTests {
  /// Two phones of a user with an authenticator: one that waits for its second factor, and one with a full session.
  private struct Pair {
    let waiting: TestPhone
    let waitingToken: String
    let approving: TestPhone
    let approvingToken: String
  }

  private func pair(_ backend: TestBackend) async throws -> Pair {
    let approving = TestPhone()
    let (token, _) = try await backend.setUp(approving)
    let waiting = TestPhone()
    _ = try await backend.link(waiting, to: approving, token: token)
    return Pair(
      waiting: waiting, waitingToken: try await backend.pendingToken(waiting), approving: approving,
      approvingToken: token)
  }

  /// The body of the answer, signed with the key of `phone`.
  private func answer(
    _ entry: JSONValue?, by phone: TestPhone, approves: Bool = true, number: Int
  ) throws -> JSONValue {
    let bytes = PushChallenge.signedBytes(
      id: try #require(UUID(uuidString: entry?["pushId"]?.text ?? "")),
      userID: try #require(UUID(uuidString: entry?["userId"]?.text ?? "")),
      nonce: try #require(Base64.decode(entry?["nonce"]?.text ?? "")), approves: approves, number: number)
    let signature = try phone.key.signature(for: Data(bytes)).derRepresentation.base64EncodedString()
    return [
      "pushId": entry?["pushId"] ?? nil, "approve": .bool(approves), "number": .number(Double(number)),
      "signature": .string(signature),
    ]
  }

  private func start(_ backend: TestBackend, _ pair: Pair) async throws -> Answer {
    try await backend.post("/auth/push/start", [:], as: pair.waiting.app, token: pair.waitingToken)
  }

  private func pending(_ backend: TestBackend, _ pair: Pair) async throws -> JSONValue? {
    try await backend.get("/auth/push", as: pair.approving.app, token: pair.approvingToken)["pushes"]
  }

  @Test("A-222 the approval of the other device, with the displayed number, makes the session full")
  func approve() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let path = "/auth/push/\(push["pushId"]?.text ?? "")"
      #expect(try await backend.get(path, as: pair.waiting.app, token: pair.waitingToken)["state"] == "pending")
      let entry = try await pending(backend, pair)?[0]
      let body = try answer(entry, by: pair.approving, number: push["number"]?.int ?? 0)
      let answered = try await backend.post(
        "/auth/push/answer", body, as: pair.approving.app, token: pair.approvingToken)
      #expect(answered["state"] == "approved")
      let outcome = try await backend.get(path, as: pair.waiting.app, token: pair.waitingToken)
      #expect(outcome["state"] == "approved")
      let token = outcome["token"]?.text
      #expect(try await backend.get("/devices/testuser", as: pair.waiting.app, token: token).status == 200)
    }
  }

  @Test("X-033 the approving device never receives the number, and a wrong number denies")
  func wrongNumber() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let entry = try await pending(backend, pair)?[0]
      #expect(entry?.keys == ["pushId", "userId", "nonce", "address", "expiresAt"])
      let wrong = (push["number"]?.int ?? 0) == 42 ? 43 : 42
      let answered = try await backend.post(
        "/auth/push/answer", answer(entry, by: pair.approving, number: wrong), as: pair.approving.app,
        token: pair.approvingToken)
      #expect(answered["state"] == "denied")
      let list = try await backend.get("/devices/testuser", as: pair.waiting.app, token: pair.waitingToken)
      #expect(list.status == 403)
    }
  }

  @Test("X-033 after a denial, a new push is refused for five minutes")
  func coolOff() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      _ = try await start(backend, pair)
      let entry = try await pending(backend, pair)?[0]
      _ = try await backend.post(
        "/auth/push/answer", answer(entry, by: pair.approving, approves: false, number: 0), as: pair.approving.app,
        token: pair.approvingToken)
      let refused = try await start(backend, pair)
      #expect(refused.status == 429)
      #expect(refused.headers["retry-after"] == "300")
      backend.clock.advance(by: .seconds(300))
      #expect(try await start(backend, pair).status == 200)
    }
  }

  @Test("X-033 at most three pushes are pending")
  func mostPending() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      for status in [200, 200, 200, 429] { #expect(try await start(backend, pair).status == status) }
      backend.clock.advance(by: .seconds(120))
      #expect(try await start(backend, pair).status == 200)
    }
  }

  @Test("X-033 after a clock that ran a day ahead was set back, the pushes of that day are removed")
  func clockSetBack() async throws {
    try await TestBackend.with { backend in
      backend.clock.advance(by: .seconds(86400))
      let pair = try await pair(backend)
      for status in [200, 200, 200, 429] { #expect(try await start(backend, pair).status == status) }
      backend.clock.advance(by: .seconds(-86400))
      #expect(try await start(backend, pair).status == 429)
      try await RecordMaintenance(backend.context).removeFuture()
      #expect(try await start(backend, pair).status == 200)
    }
  }

  @Test("W73 the signature of an approval may be in any form of base64", arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let entry = try await pending(backend, pair)?[0]
      var body = try #require(
        try answer(entry, by: pair.approving, number: push["number"]?.int ?? 0).members)
      let signature = body["signature"]?.text ?? ""
      for (text, status) in [("\(signature)*", 400), (form.text(signature), 200)] {
        body["signature"] = .string(text)
        let answered = try await backend.post(
          "/auth/push/answer", .object(body), as: pair.approving.app, token: pair.approvingToken)
        #expect(answered.status == status, "\(answered)")
      }
    }
  }

  @Test("T-55 neither a signature over other bytes nor one by another key approves")
  func signature() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let number = push["number"]?.int ?? 0
      let entry = try await pending(backend, pair)?[0]
      let refusal = try answer(entry, by: pair.approving, approves: false, number: number)
      var swapped = try #require(refusal.members)
      swapped["approve"] = true
      let outsider = try answer(entry, by: TestPhone(), number: number)
      for body in [.object(swapped), outsider] {
        let answered = try await backend.post(
          "/auth/push/answer", body, as: pair.approving.app, token: pair.approvingToken)
        #expect(answered.status == 401)
      }
      #expect(try await pending(backend, pair)?.count == 1)
    }
  }

  @Test("A-222 a session can neither approve itself nor, without its second factor, another session")
  func notOneself() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let entry = try await pending(backend, pair)?[0]
      let body = try answer(entry, by: pair.waiting, number: push["number"]?.int ?? 0)
      let own = try await backend.post("/auth/push/answer", body, as: pair.waiting.app, token: pair.waitingToken)
      #expect(own.status == 403)
    }
  }

  @Test("A-222 a session with trust in place of its second factor neither receives nor approves the push")
  func notByTrust() async throws {
    try await TestBackend.with { backend in
      let approving = TestPhone()
      let (token, authenticator) = try await backend.setUp(approving)
      let waiting = TestPhone()
      _ = try await backend.link(waiting, to: approving, token: token)
      let given = try await backend.post(
        "/auth/mfa/verify-login",
        ["code": .string(authenticator.code()), "trust_device": true, "device_name": "My phone"], as: approving.app,
        token: try await backend.pendingToken(approving))
      var proof = try #require(try backend.proof(approving, of: await backend.challenge(approving)).members)
      proof["trustToken"] = given["trust_token"] ?? nil
      let trusted = try await backend.post("/auth/verify-signature", .object(proof), as: approving.app)
      #expect(trusted["scope"] == "full")
      let pair = Pair(
        waiting: waiting, waitingToken: try await backend.pendingToken(waiting), approving: approving,
        approvingToken: trusted["token"]?.text ?? "")
      let push = try await start(backend, pair)
      #expect(try await pending(backend, pair)?.count == 0)
      let entry = try await backend.get("/auth/push", as: approving.app, token: token)["pushes"]?[0]
      let body = try answer(entry, by: approving, number: push["number"]?.int ?? 0)
      let refused = try await backend.post("/auth/push/answer", body, as: approving.app, token: pair.approvingToken)
      #expect(refused.status == 403 && refused["code"] == "mfa_required")
      // The same answer in a session that has given the factor.
      let approved = try await backend.post("/auth/push/answer", body, as: approving.app, token: token)
      #expect(approved["state"] == "approved")
    }
  }

  /// Two devices of an account without a second factor, of which `approving` has approved the session of `waiting`.
  private func pairWithoutFactor(_ backend: TestBackend) async throws -> Pair {
    let approving = TestPhone()
    let approvingToken = try await backend.token(approving)
    let waiting = TestPhone()
    _ = try await backend.link(waiting, to: approving, token: approvingToken)
    let waitingToken = try await backend.signIn(waiting)["token"]?.text ?? ""
    let pair = Pair(
      waiting: waiting, waitingToken: waitingToken, approving: approving, approvingToken: approvingToken)
    let push = try await start(backend, pair)
    let entry = try await pending(backend, pair)?[0]
    let body = try answer(entry, by: approving, number: push["number"]?.int ?? 0)
    let answered = try await backend.post("/auth/push/answer", body, as: approving.app, token: approvingToken)
    #expect(answered["state"] == "approved")
    return pair
  }

  @Test(
    "A-222 a session that was approved before the first second factor waits for the factor", arguments: [true, false])
  func approvedBefore(bySession: Bool) async throws {
    try await TestBackend.with { backend in
      let pair = try await pairWithoutFactor(backend)
      let (phone, token) = (pair.approving, pair.approvingToken)
      if bySession {
        let authenticator = try await backend.offerAuthenticator(phone, token: token)
        let code: JSONValue = ["code": .string(authenticator.code())]
        #expect(try await backend.post("/auth/mfa/verify-enrollment", code, as: phone.app, token: token).status == 200)
      } else {
        let token = try ImportedToken(
          place: "line 1", serial: "H1", kind: .hotp, secret: Array("12345678901234567890".utf8), period: 30,
          counter: 0,
          drift: 0, username: Username(phone.username))
        _ = try await Administration(backend.context).importTokens(
          [token], from: "pskc", changes: true, by: AppScene.operatorName)
      }
      for (phone, token, status) in [
        (phone, token, bySession ? 200 : 403), (pair.waiting, pair.waitingToken, 403),
      ] {
        #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == status)
      }
    }
  }

  @Test("X-053 a session that was approved in an account without a second factor administers nothing")
  func approvedAdmin() async throws {
    try await TestBackend.with { backend in
      let pair = try await pairWithoutFactor(backend)
      try await Administration(backend.context).setAdmin(true, Username("testuser"), by: .command(name: "test"))
      let answer = try await backend.get("/admin/users", as: pair.waiting.app, token: pair.waitingToken)
      #expect(answer.status == 403 && answer["code"] == "mfa_required")
    }
  }

  @Test("A-222 another session of the waiting device neither receives nor approves the push")
  func notOneKey() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let older = try await backend.token(phone)
      let token = try await backend.signIn(phone)["token"]?.text ?? ""
      try await expectRefusal(backend, of: phone, token: older, askedBy: phone, token: token)
    }
  }

  @Test("A-222 another device of the same app instance neither receives nor approves the push")
  func notOneInstance() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let second = TestPhone(app: first.app)
      try await backend.enrol(second, token: token)
      let secondToken = try await backend.signIn(second)["token"]?.text ?? ""
      try await expectRefusal(backend, of: second, token: secondToken, askedBy: first, token: token)
    }
  }

  /// Starts a push for `asking`, and expects that `phone` cannot approve it.
  private func expectRefusal(
    _ backend: TestBackend, of phone: TestPhone, token: String, askedBy asking: TestPhone, token askingToken: String
  ) async throws {
    let push = try await backend.post("/auth/push/start", [:], as: asking.app, token: askingToken)
    #expect(push.status == 200)
    #expect(try await backend.get("/auth/push", as: phone.app, token: token)["pushes"]?.count == 0)
    let id = try #require(UUID(uuidString: push["pushId"]?.text ?? ""))
    let found = try await backend.context.store.read { try $0.push(id) }
    let stored = try #require(found)
    let entry: JSONValue = [
      "pushId": .string(id.uuidString.lowercased()), "userId": .string(stored.userID.uuidString.lowercased()),
      "nonce": .string(Base64.encode(stored.nonce)),
    ]
    let body = try answer(entry, by: phone, number: stored.number)
    #expect(try await backend.post("/auth/push/answer", body, as: phone.app, token: token).status == 404)
  }

  @Test("A-222 the other device receives the push on its socket immediately")
  func bySocket() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      try await TestSocket.with(backend, as: pair.approving.app) { socket in
        _ = try await socket.call("session.attach", ["token": .string(pair.approvingToken)])
        let push = try await start(backend, pair)
        let message = try await socket.next { $0["method"] == "push.challenge" }
        #expect(message["params"]?["pushId"] == push["pushId"])
        let body = try answer(message["params"], by: pair.approving, number: push["number"]?.int ?? 0)
        #expect(try await socket.call("push.answer", body)["result"]?["state"] == "approved")
      }
    }
  }

  @Test("A-222 a push expires after two minutes without an answer")
  func expiry() async throws {
    try await TestBackend.with { backend in
      let pair = try await pair(backend)
      let push = try await start(backend, pair)
      let entry = try await pending(backend, pair)?[0]
      backend.clock.advance(by: .seconds(120))
      let body = try answer(entry, by: pair.approving, number: push["number"]?.int ?? 0)
      let late = try await backend.post("/auth/push/answer", body, as: pair.approving.app, token: pair.approvingToken)
      #expect(late.status == 404)
      let path = "/auth/push/\(push["pushId"]?.text ?? "")"
      #expect(try await backend.get(path, as: pair.waiting.app, token: pair.waitingToken).status == 410)
    }
  }
}
