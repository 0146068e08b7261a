import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import MFAService
import OneTimePasswords
import Testing

@Suite("Challenges and codes in use")
struct CodeUseTests {
  private static let request: JSONValue = ["username": "testuser", "phoneNumber": "+1234567890"]

  @Test("A-143 a code is valid only for its own account and app instance")
  func onlyOwn() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      try await backend.enrol(TestPhone(username: "other", app: phone.app), method: "smsOTP")
      _ = try await backend.post("/auth/request-otp", Self.request, as: phone.app)
      let code: JSONValue = .string(backend.outbox.lastCode ?? "")
      for (user, app) in [("other", phone.app), ("testuser", .genuine())] as [(String, AppInstance)] {
        let answer = try await backend.post("/auth/verify-otp", ["username": .string(user), "otp": code], as: app)
        #expect(answer.status == 401, "\(user)")
      }
      let right = try await backend.post("/auth/verify-otp", ["username": "testuser", "otp": code], as: phone.app)
      #expect(right.status == 200)
    }
  }

  @Test(
    "A-182 a challenge is valid for less than 300 s, by each transport",
    arguments: Wire.allCases, [299, 300])
  func challengeLife(_ wire: Wire, _ age: Int) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        let challenge = try await client.call("auth.initiate", phone.naming)
        backend.clock.advance(by: .seconds(age))
        let answer = try await client.call(
          "auth.verify-signature",
          [
            "username": .string(phone.username), "deviceId": .string(phone.deviceID),
            "challengeId": challenge["challengeId"] ?? nil,
            "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
          ])
        #expect((answer["success"] == true) == (age < 300))
      }
    }
  }

  @Test("A-233 challenges and codes are valid for 300 s, and the answers state it")
  func lives() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone, method: "smsOTP")
      let sent = try await backend.post("/auth/request-otp", Self.request, as: phone.app)
      #expect(sent["expiresIn"] == 300)
      #expect(backend.outbox.messages.last?.lifetime == .seconds(300))
      #expect(try await backend.challenge(phone)["expiresIn"] == 300)
    }
  }

  @Test(
    "A-186 no claim of a client replaces a signature",
    arguments: [
      ["verified": true, "signature": ""], ["verified": true], ["signature": nil], ["signature": "AAAAAAAAAAAAAAAA"],
      ["biometricSuccess": true, "signature": "MAYCAQECAQE="],
    ] as [JSONValue])
  func claimed(_ claim: JSONValue) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let challenge = try await backend.challenge(phone)
      var body = try #require(phone.naming.members)
      body["challengeId"] = challenge["challengeId"]
      body.merge(try #require(claim.members)) { $1 }
      let answer = try await backend.post("/auth/verify-signature", .object(body), as: phone.app)
      #expect([400, 401].contains(answer.status))
      #expect(answer["token"] == nil)
    }
  }

  @Test("A-228 an app instance that requests codes faster than the default limits allow gets 429")
  func pace() async throws {
    try await TestBackend.with(rateLimits: RateLimits()) { backend in
      let phone = TestPhone()
      var statuses: [Int] = []
      for number in 1...21 {
        let asked: JSONValue = ["username": .string("user\(number)"), "phoneNumber": "+1234567890"]
        statuses.append(try await backend.post("/auth/request-otp", asked, as: phone.app).status)
      }
      #expect(statuses == Array(repeating: 200, count: 20) + [429])
      // Reads have a rate limit of their own.
      #expect(try await backend.get("/device/d/status", as: phone.app).status == 200)
    }
  }

  @Test(
    "A-228 many app instances at one address share a limit on requests for codes, and other addresses have their own")
  func paceOfAddress() async throws {
    var rateLimits = RateLimits()
    rateLimits.sensitiveOfAddress = .init(size: 3, perSecond: 0.5)
    try await TestBackend.with(rateLimits: rateLimits) { backend in
      for _ in 1...3 {
        #expect(try await backend.post("/auth/request-otp", Self.request, as: .genuine()).status == 200)
      }
      let fourth = try await backend.post("/auth/request-otp", Self.request, as: .genuine())
      #expect(fourth.status == 429 && fourth["retryAfter"] == 2)
      var elsewhere = AppInstance.genuine()
      elsewhere.address = "192.0.2.2"
      #expect(try await backend.post("/auth/request-otp", Self.request, as: elsewhere).status == 200)
    }
  }

  @Test("A-228 without a limit per address, only the limit per app instance applies")
  func paceWithoutAddresses() async throws {
    var rateLimits = RateLimits()
    rateLimits.sensitiveOfAddress = nil
    try await TestBackend.with(rateLimits: rateLimits) { backend async throws in
      for _ in 1...120 {
        #expect(
          try await backend.post("/auth/verify-otp", ["username": "u", "otp": "000000"], as: .genuine()).status == 401)
      }
    }
  }

  @Test("T-57 A-212 an access token is a JWT signed by ES256 with a published key, and an unsigned one is refused")
  func realTokens() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let parts = token.split(separator: ".").map(String.init)
      let header = try JSONValue(Data(try #require(Base64URL.decode(parts[0]))))
      #expect(header["alg"] == "ES256" && header["typ"] == "at+jwt")
      let keys = try await backend.send("GET", "/.well-known/jwks.json", as: nil)
      #expect(keys["keys"]?[0]?["kid"] == header["kid"])
      #expect(keys["keys"]?[0]?["d"] == nil)
      let none = Base64URL.encode(Array(#"{"alg":"none","typ":"at+jwt"}"#.utf8))
      for forged in ["\(none).\(parts[1]).", "\(none).\(parts[1]).\(parts[2])"] {
        #expect(try await backend.get("/devices/testuser", as: phone.app, token: forged).status == 401)
      }
    }
  }

  @Test("B-061 an authenticator's secret is returned once, and by no later answer")
  func secretOnce() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      let secret = Base32.encode(authenticator.secret)
      for path in ["/auth/mfa/status", "/devices/testuser", "/device/\(phone.deviceID)/status", "/auth/notices"] {
        let answer = try await backend.get(path, as: phone.app, token: token)
        #expect(answer.status == 200 && !String(decoding: answer.body, as: UTF8.self).contains(secret), "\(path)")
      }
      #expect(try await backend.post("/auth/mfa/enroll", [:], as: phone.app, token: token).status == 409)
    }
  }
}
