import Crypto
import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Enrolment")
struct EnrolmentTests {
  @Test("A-080 enrolment answers with the documented JSON")
  func enrol() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let answer = try await backend.enrol(phone)
      #expect(answer.status == 200)
      #expect(
        answer.json == [
          "success": true, "deviceId": .string(phone.deviceID), "method": "secureEnclave",
          "message": "Device enrolled successfully",
        ])
    }
  }

  @Test("A-080 enrolment for smsOTP needs no key, and answers with the method")
  func enrolSMS() async throws {
    try await TestBackend.with { backend in
      let answer = try await backend.enrol(TestPhone(), method: "smsOTP")
      #expect(answer.status == 200)
      #expect(answer["method"] == "smsOTP")
    }
  }

  struct Fault: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let field: String
    let change: @Sendable (inout [String: JSONValue]) -> Void

    init(_ description: String, _ field: String, _ change: @escaping @Sendable (inout [String: JSONValue]) -> Void) {
      testDescription = description
      self.field = field
      self.change = change
    }
  }

  static let faults = [
    Fault("no key for secureEnclave", "publicKey") { $0["publicKey"] = nil },
    Fault("an empty key", "publicKey") { $0["publicKey"] = "" },
    Fault("a key that is no base64", "publicKey") { $0["publicKey"] = "not base64" },
    Fault("a number for a key", "publicKey") { $0["publicKey"] = 7 },
    Fault("no phone number for smsOTP", "phoneNumber") {
      $0["method"] = "smsOTP"
      $0["phoneNumber"] = nil
    },
    Fault("a phone number in letters", "phoneNumber") { $0["phoneNumber"] = "call me" },
    Fault("the Java name of a method", "method") { $0["method"] = "SMS_OTP" },
    Fault("no method", "method") { $0["method"] = nil },
    Fault("no username", "username") { $0["username"] = nil },
    Fault("an empty username", "username") { $0["username"] = "" },
    Fault("a username of 129 characters", "username") { $0["username"] = .string(String(repeating: "x", count: 129)) },
    Fault("a username with a line end", "username") { $0["username"] = "a\nb" },
    Fault("a device id with a space", "deviceId") { $0["deviceId"] = "a b" },
    Fault("a device id of 129 characters", "deviceId") { $0["deviceId"] = .string(String(repeating: "x", count: 129)) },
    Fault("a model of 129 characters", "deviceModel") {
      $0["deviceModel"] = .string(String(repeating: "x", count: 129))
    },
    Fault("an unlock method that does not exist", "authMethod") { $0["authMethod"] = "voice" },
  ]

  @Test("T-20 A-172 enrolment refuses an invalid field and names it", arguments: faults)
  func invalid(_ fault: Fault) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      var body = try #require(phone.enrolment().members)
      fault.change(&body)
      let answer = try await backend.post("/mfa/enroll", .object(body), as: phone.app)
      #expect(answer.status == 400)
      #expect(answer["code"] == "invalid_request")
      #expect(answer["message"]?.text?.hasPrefix(fault.field) == true)
      // Nothing was stored: the same phone can be enrolled.
      #expect(try await backend.enrol(phone).status == 200)
    }
  }

  @Test(
    "A-031 a key of another curve gets 400",
    arguments: [
      P384.Signing.PrivateKey().publicKey.x963Representation, P521.Signing.PrivateKey().publicKey.x963Representation,
      Curve25519.Signing.PrivateKey().publicKey.rawRepresentation,
      P384.Signing.PrivateKey().publicKey.derRepresentation,
    ])
  func otherCurve(_ key: Data) async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      var body = try #require(phone.enrolment().members)
      body["publicKey"] = .string(key.base64EncodedString())
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == 400)
    }
  }

  /// Keys in forms that are not accepted, and what the refusal says of each.
  static let otherKeys: [(name: String, text: String, reason: String)] = {
    let key = P256.Signing.PrivateKey().publicKey
    let (point, info) = (Array(key.x963Representation), Array(key.derRepresentation))
    // The compressed point in a SubjectPublicKeyInfo, whose lengths are shorter by 32 bytes.
    let compressedInfo: [UInt8] = [0x30, 0x39] + info[2..<24] + [0x22, 0x00] + Array(key.compressedRepresentation)
    let jwk = #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#
    func base64(_ bytes: some Collection<UInt8>) -> String { Data(bytes).base64EncodedString() }
    return [
      ("PEM", key.pemRepresentation, "this is PEM: send the base64 between its first and last line"),
      ("PEM after a line end", "\r\n" + key.pemRepresentation, "this is PEM"),
      ("a compressed point", base64(Array(key.compressedRepresentation)), "this is a compressed point"),
      ("a compressed point as SubjectPublicKeyInfo", base64(compressedInfo), "this is a compressed point"),
      ("x and y alone", base64(Array(key.rawRepresentation)), "these are 64 bytes: send 04 before x and y"),
      ("hex", point.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined(), "this is hex"),
      ("hex that is base64, too", "04" + String(repeating: "A", count: 128), "this is hex"),
      ("a JWK", jwk, "this is a JSON object"), ("two alphabets", base64(point.dropLast(2)) + "+-==", "not base64"),
      ("a space in it", base64(point).replacing("B", with: "B ", maxReplacements: 1), "not base64"),
      ("a byte less", base64(point.dropLast()), "these are 64 bytes"), ("a byte more", base64(point + [0]), "66 bytes"),
      ("a point off the curve", base64(point.dropLast() + [(point.last ?? 0) ^ 1]), "no uncompressed point"),
      ("a SubjectPublicKeyInfo of another curve", base64(info[..<22] + [0x08] + info[23...]), "no uncompressed point"),
    ]
  }()

  @Test("W73 a key in another form is refused with the form that was sent and the one that is expected")
  func otherForms() async throws {
    try await TestBackend.with { backend async throws in
      let phone = TestPhone()
      for (name, text, reason) in Self.otherKeys {
        var body = try #require(phone.enrolment().members)
        body["publicKey"] = .string(text)
        let answer = try await backend.post("/mfa/enroll", .object(body), as: phone.app)
        let message = answer["message"]?.text ?? ""
        #expect(answer.status == 400 && answer["code"] == "invalid_request", "\(name): \(answer)")
        #expect(message.hasPrefix("publicKey is a P-256 key in base64: 65 bytes"), "\(name): \(message)")
        #expect(message.contains(reason) && !message.contains(text), "\(name): \(message)")
      }
      // The same key between the lines of PEM is accepted.
      var body = try #require(phone.enrolment().members)
      let lines = phone.key.publicKey.pemRepresentation.split(separator: "\n").dropFirst().dropLast()
      body["publicKey"] = .string(lines.joined(separator: "\r\n"))
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == 200)
    }
  }

  @Test("X-030 an app instance creates as many accounts as the policy allows, and each other one has its own limit")
  func mostAccounts() async throws {
    var policy = Policy()
    policy.mostAccountsOfInstance = 2
    try await TestBackend.with(policy: policy) { backend in
      let app = AppInstance.genuine()
      for name in ["one", "two"] { #expect(try await backend.enrol(TestPhone(username: name, app: app)).status == 200) }
      let third = try await backend.enrol(TestPhone(username: "three", app: app))
      #expect(third.status == 409 && third["code"] == "too_many_accounts")
      #expect(try await backend.enrol(TestPhone(username: "three")).status == 200)
    }
  }

  @Test("a new account's name is refused if it mixes scripts or looks like an existing one")
  func lookalikes() async throws {
    try await TestBackend.with { backend in
      #expect(try await backend.enrol(TestPhone(username: "admin")).status == 200)
      let mixed = try await backend.enrol(TestPhone(username: "\u{430}dmin"))
      #expect(mixed.status == 400 && mixed["message"]?.text?.hasPrefix("username") == true)
      #expect(try await backend.enrol(TestPhone(username: "\u{FF21}dmin")).status == 401)
    }
  }

  @Test("T-6 A-091 an enrolment under another user's device id is refused, and overwrites nothing")
  func takenDevice() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone(username: "owner")
      try await backend.enrol(owner)
      let thief = TestPhone(username: "thief", deviceID: owner.deviceID)
      let answer = try await backend.enrol(thief)
      #expect(answer.status == 409)
      #expect(answer["code"] == "device_exists")
      #expect(try await backend.signIn(owner).status == 200)
    }
  }

  @Test("X-051 the answers to enrolment reveal neither the user of a device nor whether a name belongs to it")
  func oracle() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone(username: "owner")
      try await backend.enrol(owner)
      try await backend.enrol(TestPhone(username: "other"))
      let outsider = AppInstance.genuine()
      func ask(_ username: String, _ code: JSONValue?) async throws -> Answer {
        let phone = TestPhone(username: username, deviceID: owner.deviceID, app: outsider)
        var body = try #require(phone.enrolment().members)
        body["linkCode"] = code
        return try await backend.send(
          "POST", "/api/v1/mfa/enroll", .object(body), as: outsider, headers: [("X-Request-Id", "same")])
      }
      let first = try await ask("owner", nil)
      #expect(first.status == 409)
      func expectNothing(_ state: Comment) async throws {
        for username in ["owner", "other", "nobody"] {
          for code in [nil, "WRONGONE"] as [JSONValue?] {
            let answer = try await ask(username, code)
            #expect(answer.status == first.status && answer.json == first.json, "\(username), \(state)")
          }
        }
      }
      try await expectNothing("enrolled")
      let token = try await backend.signIn(owner)["token"]?.text
      #expect(try await backend.post("/mfa/unenroll", owner.naming, as: owner.app, token: token).status == 200)
      // Six wrong codes: the last one reaches the attempt limit, and its answer reveals nothing either.
      for _ in 1...6 { try await expectNothing("removed") }
    }
  }

  @Test(
    "A-080 a repeated enrolment gets the same answer and is performed once, also with a link code",
    arguments: [false, true])
  func again(_ byCode: Bool) async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let phone = byCode ? TestPhone() : first
      var body = try #require(phone.enrolment().members)
      if byCode { body["linkCode"] = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"] }
      for _ in 1...2 { #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == 200) }
      let devices = try await backend.get("/devices/testuser", as: first.app, token: token)["devices"]
      #expect(devices?.count == (byCode ? 2 : 1))
      let entries = try await Administration(backend.context).history(
        of: Username("testuser"), before: nil, atMost: 100, by: .command(name: "test"))
      #expect(entries.filter { $0.event.hasPrefix("device.") }.count == (byCode ? 2 : 1))
      #expect(try await backend.signIn(phone).status == 200)
      // An enrolment with another key or number is a different one.
      body["linkCode"] = nil
      body["phoneNumber"] = "+1234567899"
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == 401)
      body["phoneNumber"] = .string(phone.number)
      body["publicKey"] = .string(TestPhone().publicKey)
      #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == 401)
      #expect(try await backend.post("/mfa/enroll", phone.enrolment(), as: .genuine()).status == 409)
    }
  }

  @Test("X-013 an existing account gets a further device only with a session of its user")
  func takenName() async throws {
    try await TestBackend.with { backend in
      let owner = TestPhone()
      let token = try await backend.token(owner)
      let second = TestPhone(app: owner.app)
      #expect(try await backend.enrol(second).status == 401)
      #expect(try await backend.enrol(second, token: token).status == 200)
    }
  }

  @Test("A-213 a user can have ten devices, and an eleventh is refused")
  func manyDevices() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      for _ in 2...10 { #expect(try await backend.enrol(TestPhone(app: first.app), token: token).status == 200) }
      let eleventh = try await backend.enrol(TestPhone(app: first.app), token: token)
      #expect(eleventh.status == 409)
      #expect(eleventh["code"] == "too_many_devices")
      #expect(try await backend.get("/devices/testuser", as: first.app, token: token)["devices"]?.count == 10)
      // A right link code stays valid meanwhile, and the history tells of the refusal.
      let code = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"]
      let other = TestPhone()
      var body = try #require(other.enrolment().members)
      body["linkCode"] = code ?? nil
      for _ in 1...2 {
        let linked = try await backend.post("/mfa/enroll", .object(body), as: other.app)
        #expect(linked["code"] == "too_many_devices")
      }
      let entry = try await Administration(backend.context).history(
        of: nil, before: nil, atMost: 1, by: .command(name: "test")
      ).first
      #expect(entry?.event == "enrolment.refused" && entry?.detail.contains("reason=too_many_devices") == true)
    }
  }

  @Test("A-230 a link code enrols another phone once")
  func link() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let second = TestPhone()
      #expect(try await backend.link(second, to: first, token: token).status == 200)
      #expect(try await backend.signIn(second).status == 200)
      let code = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"]
      for status in [200, 401] {
        let phone = TestPhone()
        var body = try #require(phone.enrolment().members)
        body["linkCode"] = code ?? nil
        #expect(try await backend.post("/mfa/enroll", .object(body), as: phone.app).status == status)
      }
    }
  }

  @Test("X-030 who has an expired link code learns that it has; to others the name is like one without a code")
  func expiredLinkCode() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let code = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"] ?? nil
      backend.clock.advance(by: .seconds(600))
      let guesses: [(JSONValue, Int, JSONValue)] = [("WRONGONE", 401, "invalid_code"), (code, 410, "expired_code")]
      for (guess, status, reason) in guesses {
        let phone = TestPhone()
        let body = phone.enrolment().with(["linkCode": guess])
        let answer = try await backend.post("/mfa/enroll", body, as: phone.app)
        #expect(answer.status == status && answer["code"] == reason)
      }
    }
  }

  @Test(
    "X-002 a device id or username that a path would read as another path, or that proxies refuse in one, is refused",
    arguments: [".", "..", "a/b", "a\\b", "dev%2f1", "/"])
  func dots(_ name: String) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      for field in ["deviceId", "username"] {
        let body = phone.enrolment().with([field: .string(name)])
        let answer = try await backend.post("/mfa/enroll", body, as: phone.app)
        #expect(answer.status == 400 && answer["error"]?.text?.contains(field) == true)
      }
    }
  }

  @Test("X-030 wrong link codes limit the app instance that guessed, and leave the code valid for others")
  func wrongLinkCode() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let code = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"]
      let second = TestPhone()
      var body = try #require(second.enrolment().members)
      body["linkCode"] = "WRONGONE"
      for status in [401, 401, 401, 401, 401, 429] {
        #expect(try await backend.post("/mfa/enroll", .object(body), as: second.app).status == status)
      }
      body["linkCode"] = code ?? nil
      #expect(try await backend.post("/mfa/enroll", .object(body), as: second.app).status == 429)
      #expect(try await backend.post("/mfa/enroll", .object(body), as: .genuine()).status == 200)
    }
  }

  @Test("A-230 a link code for an unknown name creates no account, and the guesses are limited")
  func mistypedName() async throws {
    try await TestBackend.with { backend in
      let first = TestPhone()
      let token = try await backend.token(first)
      let code = try await backend.post("/mfa/link", [:], as: first.app, token: token)["linkCode"]
      let second = TestPhone(username: "tetsuser")
      var body = try #require(second.enrolment().members)
      body["linkCode"] = code ?? nil
      for status in [401, 401, 401, 401, 401, 429] {
        #expect(try await backend.post("/mfa/enroll", .object(body), as: second.app).status == status)
      }
      #expect(try await backend.context.store.read { try $0.isAccount("tetsuser") } == false)
      // The code is still valid for the right name.
      body["username"] = .string(first.username)
      #expect(try await backend.post("/mfa/enroll", .object(body), as: second.app).status == 200)
    }
  }

  @Test(
    "A-090 names that differ only in case or Unicode composition are one user",
    arguments: [("Zoë", "ZOE\u{308}"), ("ada", "ADA")])
  func oneName(_ names: (String, String)) async throws {
    try await TestBackend.with { backend in
      try await backend.enrol(TestPhone(username: names.0))
      #expect(try await backend.enrol(TestPhone(username: names.1)).status == 401)
    }
  }
}
