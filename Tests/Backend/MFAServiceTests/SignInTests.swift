import Crypto
import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Signing in with a key")
struct SignInTests {
  @Test("T-7 A-084 initiate answers with four values, none of them null", arguments: ["secureEnclave", "smsOTP"])
  func initiate(_ method: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: method)
      let answer = try await backend.challenge(phone)
      #expect(answer.status == 200)
      #expect(answer.json?.keys == ["method", "challenge", "challengeId", "expiresIn"])
      #expect(answer["method"] == .string(method))
      #expect(answer["expiresIn"] == 300)
      #expect(UUID(uuidString: answer["challengeId"]?.text ?? "") != nil)
    }
  }

  @Test("A-095 a challenge has 32 bytes, and no two are equal")
  func challenges() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      var seen: Set<Data> = []
      for _ in 1...100 {
        let nonce = Data(base64Encoded: try await backend.challenge(phone)["challenge"]?.text ?? "")
        #expect(nonce?.count == 32)
        #expect(nonce.map { seen.insert($0).inserted } == true)
      }
    }
  }

  @Test("the right signature gets a token and the documented text")
  func verify() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let answer = try await backend.signIn(phone)
      #expect(answer.status == 200)
      #expect(answer["success"] == true)
      #expect(answer["message"] == "Authentication successful")
      #expect(answer["token"]?.text?.split(separator: ".").count == 3)
    }
  }

  @Test("A-023 a signature with one flipped bit gets 401 and no token", arguments: [8, 40, 60])
  func flippedBit(_ index: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let challenge = try await backend.challenge(phone)
      var body = try #require(try backend.proof(phone, of: challenge).members)
      var signature = Data(base64Encoded: body["signature"]?.text ?? "") ?? Data()
      signature[index] ^= 1
      body["signature"] = .string(signature.base64EncodedString())
      let answer = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(answer.status == 401)
      #expect(answer["token"] == nil)
      // The challenge is still valid for its owner.
      #expect(
        try await backend.post("/auth/verify-signature", backend.proof(phone, of: challenge), as: phone.app).status
          == 200)
    }
  }

  struct Mismatch: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let field: String
    let value: JSONValue
  }

  @Test(
    "A-085 a wrong user, device or challenge gets the 401 of a wrong signature, and the right ones get a token",
    arguments: [
      Mismatch(testDescription: "user that is known", field: "username", value: "other"),
      Mismatch(testDescription: "user that is not known", field: "username", value: "nobody"),
      Mismatch(testDescription: "device", field: "deviceId", value: "other-device"),
      Mismatch(
        testDescription: "challenge", field: "challengeId", value: "6f8ee8ba-7a3c-4b9f-8a0a-0d5ac9a3b111"),
    ])
  func mismatch(_ mismatch: Mismatch) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      try await backend.enrol(TestPhone(username: "other"))
      var body = try #require(try backend.proof(phone, of: await backend.challenge(phone)).members)
      let right = body
      body[mismatch.field] = mismatch.value
      let answer = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(answer.status == 401)
      #expect(answer["code"] == "authentication_failed")
      #expect(answer["message"] == "Authentication failed")
      var unsigned = right
      unsigned["signature"] = .string(try phone.key.signature(for: Data()).derRepresentation.base64EncodedString())
      let other = try await backend.post("/auth/verify-signature", .object(unsigned), as: phone.app)
      #expect(other.status == 401)
      var bodies = [answer, other].compactMap(\.json?.members)
      for index in bodies.indices { #expect(bodies[index].removeValue(forKey: "requestId") != nil) }
      #expect(bodies.count == 2 && bodies.first == bodies.last)
      #expect(try await backend.post("/auth/verify-signature", .object(right), as: phone.app)["success"] == true)
    }
  }

  @Test(
    "A-142 a challenge is valid for less than 300 s", arguments: [(299_999, 200), (300_000, 401)])
  func expiry(_ milliseconds: Int, _ status: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let challenge = try await backend.challenge(phone)
      backend.clock.advance(by: .milliseconds(milliseconds))
      let answer = try await backend.post("/auth/verify-signature", backend.proof(phone, of: challenge), as: phone.app)
      #expect(answer.status == status)
    }
  }

  @Test("A-184 of 50 parallel answers to one challenge, exactly one succeeds")
  func race() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let challenge = try await backend.challenge(phone)
      let statuses = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask {
            try await backend.post("/auth/verify-signature", backend.proof(phone, of: challenge), as: phone.app).status
          }
        }
        return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
      }
      #expect(statuses == [200: 1, 401: 49])
    }
  }

  @Test("T-2 A-094 raw signatures and SPKI keys are accepted as well as DER and X9.63")
  func otherForms() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      var enrolment = try #require(phone.enrolment().members)
      enrolment["publicKey"] = .string(phone.key.publicKey.derRepresentation.base64EncodedString())
      #expect(try await backend.post("/mfa/enroll", .object(enrolment), as: phone.app).status == 200)
      let challenge = try await backend.challenge(phone)
      var body = try #require(try backend.proof(phone, of: challenge).members)
      let nonce = Data(base64Encoded: challenge["challenge"]?.text ?? "") ?? Data()
      body["signature"] = .string(try phone.key.signature(for: nonce).rawRepresentation.base64EncodedString())
      #expect(try await backend.post("/auth/verify-signature", .object(body), as: phone.app).status == 200)
    }
  }

  @Test(
    "W73 key and signature may be in any form of base64; two alphabets in one text are refused and cost no attempt",
    arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      var enrolment = try #require(phone.enrolment().members)
      enrolment["publicKey"] = .string(form.text(phone.publicKey))
      #expect(try await backend.post("/mfa/enroll", .object(enrolment), as: phone.app).status == 200)
      let challenge = try await backend.challenge(phone)
      var body = try #require(try backend.proof(phone, of: challenge).members)
      var signature = body["signature"]?.text ?? ""
      // ECDSA is randomized, and one of five signatures has fewer than two digits in which the alphabets differ.
      while OtherBase64.mixed(signature) == nil { signature = try phone.sign(challenge["challenge"]?.text ?? "") }
      body["signature"] = .string(try #require(OtherBase64.mixed(signature)))
      let refused = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect(refused.status == 400 && refused["code"] == "invalid_request")
      #expect(refused["message"]?.text?.contains("this is not base64") == true, "\(refused)")
      body["signature"] = .string(form.text(signature))
      #expect(try await backend.post("/auth/verify-signature", .object(body), as: phone.app).status == 200)
    }
  }

  @Test("T-3 A-021 a signature over the challenge's text instead of its bytes gets 401")
  func textIsNotSigned() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let challenge = try await backend.challenge(phone)
      var body = try #require(try backend.proof(phone, of: challenge).members)
      let text = Data((challenge["challenge"]?.text ?? "").utf8)
      body["signature"] = .string(try phone.key.signature(for: text).derRepresentation.base64EncodedString())
      #expect(try await backend.post("/auth/verify-signature", .object(body), as: phone.app).status == 401)
    }
  }

  @Test("A-084 no signature is accepted for the challenge of an SMS device")
  func noSignatureForSMS() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      #expect(try await backend.signIn(phone).status == 401)
    }
  }

  @Test("A-098 a sign-in updates lastUsed, which is null before the first")
  func lastUsed() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let second = TestPhone(deviceID: "never-used", app: phone.app)
      try await backend.enrol(second, token: token)
      backend.clock.advance(by: .seconds(60))
      _ = try await backend.signIn(phone)
      let devices = try await backend.get("/devices/testuser", as: phone.app, token: token)["devices"]
      #expect(devices?[0]?["lastUsed"] == "2026-01-01T00:01:00Z")
      #expect(devices?[1]?["lastUsed"] == .null)
    }
  }

  @Test("X-051 initiate gives answers of the same form for known and unknown users")
  func unknownUser() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let known = try await backend.challenge(phone)
      let unknown = try await backend.challenge(TestPhone(username: "nobody"))
      #expect(known.status == unknown.status)
      #expect(known.json?.keys == unknown.json?.keys)
      #expect(known.body.count == unknown.body.count)
    }
  }
}
