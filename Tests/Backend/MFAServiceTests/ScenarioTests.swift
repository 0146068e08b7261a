import Crypto
import MFADomain
import MFAFixtures
import Testing

/// The server's half of the ten scenarios, on both databases and by both transports.
@Suite("The ten scenarios", .serialized)
struct ScenarioTests {
  private func play(
    _ database: TestDatabase, _ wire: Wire, _ phone: TestPhone,
    _ body: (AppClient, TestBackend) async throws -> Void
  ) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      try await AppClient.with(backend, wire, as: phone.app) { try await body($0, backend) }
    }
  }

  @Test(
    "A-S01 enrolment of a key that biometry unlocks, the server's half", arguments: TestDatabase.allCases, Wire.allCases
  )
  func biometric(_ database: TestDatabase, _ wire: Wire) async throws {
    try await enrols("biometric", database, wire)
  }

  @Test(
    "A-S02 enrolment of a key that the passcode unlocks, after the prompt was declined, the server's half",
    arguments: TestDatabase.allCases, Wire.allCases)
  func declined(_ database: TestDatabase, _ wire: Wire) async throws {
    try await enrols("passcode", database, wire)
  }

  @Test(
    "A-S03 enrolment of a key in an app that uses only the passcode, the server's half",
    arguments: TestDatabase.allCases, Wire.allCases)
  func passcodeAlone(_ database: TestDatabase, _ wire: Wire) async throws {
    try await enrols("passcode", database, wire)
  }

  @Test(
    "A-S04 enrolment of a key without biometry and without a reported unlock method, the server's half",
    arguments: TestDatabase.allCases, Wire.allCases)
  func untold(_ database: TestDatabase, _ wire: Wire) async throws { try await enrols(nil, database, wire) }

  @Test("A-172 an enrolment with an unknown unlock method is refused", arguments: TestDatabase.allCases, Wire.allCases)
  func unknownUnlocking(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, _ in
      let answer = try await client.call("mfa.enroll", Self.enrolment(of: phone, unlockedBy: "iris"))
      #expect(answer["code"] == "invalid_request")
      #expect(try await client.status(phone)["enrolled"] == false)
    }
  }

  private func enrols(_ unlocking: String?, _ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, _ in
      #expect(try await client.status(phone)["enrolled"] == false)
      let answer = try await client.call("mfa.enroll", Self.enrolment(of: phone, unlockedBy: unlocking))
      #expect(answer["message"] == "Device enrolled successfully")
      let status = try await client.status(phone)
      #expect(status["method"] == "secureEnclave")
      #expect(status["hasPublicKey"] == true)
    }
  }

  private static func enrolment(of phone: TestPhone, unlockedBy unlocking: String?) -> JSONValue {
    phone.enrolment().with(unlocking.map { ["authMethod": .string($0)] } ?? [:])
  }

  @Test(
    "A-S05 enrolment from a device without security, and sign-in by a code by SMS, the server's half",
    arguments: TestDatabase.allCases,
    Wire.allCases)
  func smsOnly(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, backend in
      #expect(try await client.call("mfa.enroll", phone.enrolment(method: "smsOTP"))["method"] == "smsOTP")
      #expect(try await client.call("auth.initiate", phone.naming)["method"] == "smsOTP")
      let asked = try await client.call(
        "auth.request-otp", ["username": .string(phone.username), "phoneNumber": .string(phone.number)])
      #expect(asked["message"] == "OTP sent to +1234567890")
      #expect(backend.outbox.messages.count == 1)
      #expect(try await client.signInWithCode(phone)["message"] == "Authentication successful")
      #expect(try await client.signInWithCode(phone)["code"] == "invalid_code")
    }
  }

  @Test(
    "A-S06 an enrolled app signs in with its key, and its last use is updated", arguments: TestDatabase.allCases,
    Wire.allCases
  )
  func signIn(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, backend in
      _ = try await client.call("mfa.enroll", phone.enrolment())
      let token = try await client.signIn(phone)["token"]?.text
      let list = try await client.call("devices.list", ["username": .string(phone.username)], token: token)
      #expect(list["devices"]?[0]?["lastUsed"] == "2026-01-01T00:00:00Z")
      var thief = phone
      thief.key = P256.Signing.PrivateKey()
      #expect(try await client.signIn(thief)["code"] == "authentication_failed")
    }
  }

  @Test(
    "A-S08 an app that has lost its key falls back to SMS, and the lost key is refused",
    arguments: TestDatabase.allCases, Wire.allCases)
  func lost(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, _ in
      try await Self.lose(phone, client)
      #expect(try await client.status(phone)["method"] == "smsOTP")
    }
  }

  @Test(
    "A-S09 an app that has fallen back to SMS upgrades to a new key", arguments: TestDatabase.allCases,
    Wire.allCases)
  func restored(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, _ in
      let token = try await Self.lose(phone, client)
      var restored = phone
      restored.key = P256.Signing.PrivateKey()
      var body = try #require(restored.naming.members)
      body["publicKey"] = .string(restored.publicKey)
      let upgraded = try await client.call("mfa.upgrade", .object(body), token: token)
      #expect(upgraded["message"] == "Upgraded to Secure Enclave MFA")
      #expect(try await client.signIn(phone)["code"] == "authentication_failed")
      #expect(try await client.signIn(restored)["success"] == true)
    }
  }

  /// Enrols with a key, downgrades, and signs in by SMS. Returns the token.
  @discardableResult
  private static func lose(_ phone: TestPhone, _ client: AppClient) async throws -> String? {
    _ = try await client.call("mfa.enroll", phone.enrolment())
    #expect(try await client.call("mfa.downgrade", phone.naming)["message"] == "Downgraded to SMS OTP")
    #expect(try await client.signIn(phone)["code"] == "authentication_failed")
    return try await client.signInWithCode(phone)["token"]?.text
  }

  @Test(
    "A-S10 an app that replaces its key signs in only with the new one", arguments: TestDatabase.allCases, Wire.allCases
  )
  func switched(_ database: TestDatabase, _ wire: Wire) async throws {
    let phone = TestPhone()
    try await play(database, wire, phone) { client, _ in
      _ = try await client.call("mfa.enroll", phone.enrolment())
      let token = try await client.signIn(phone)["token"]?.text
      var switched = phone
      switched.key = P256.Signing.PrivateKey()
      var body = try #require(switched.naming.members)
      body["publicKey"] = .string(switched.publicKey)
      body["authMethod"] = "passcode"
      #expect(try await client.call("mfa.upgrade", .object(body), token: token)["success"] == true)
      #expect(try await client.signIn(phone)["code"] == "authentication_failed")
      #expect(try await client.signIn(switched)["success"] == true)
    }
  }

  @Test(
    "X-055 of 50 parallel uses of one backup code, one is accepted; of 200 parallel guesses, five are compared",
    arguments: TestDatabase.allCases)
  func races(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let pending = try await backend.pendingToken(phone)
      let code = authenticator.backupCodes[3]
      let accepted = try await withThrowingTaskGroup { group in
        for _ in 1...50 {
          group.addTask { try await backend.verifyLogin(code, phone, token: pending).status == 200 }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(accepted == 1)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: pending)
      #expect(status["backup_codes_remaining"] == 9)
      let looked = try await withThrowingTaskGroup { group in
        for _ in 1...200 {
          group.addTask {
            try await backend.post("/auth/verify-otp", ["username": "testuser", "otp": "000000"], as: phone.app).status
              == 401
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(looked == 5)
    }
  }

  @Test("X-050 the history verifies on both databases", arguments: TestDatabase.allCases)
  func history(_ database: TestDatabase) async throws {
    let store = try await database.open()
    try await TestBackend.with(store: store) { backend in
      let phone = TestPhone()
      _ = try await backend.setUp(phone)
      try await RecordMaintenance(backend.context).clean()
      let verdict = try await backend.trail.verify()
      #expect(verdict.fault == nil)
      #expect(verdict.entries >= 4)
    }
  }
}
