import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import TestSupport
import Testing

extension TestPhone {
  /// The same phone with the same app, at another address.
  func at(_ address: String) -> TestPhone {
    var app = app
    app.address = address
    var phone = TestPhone(username: username, deviceID: deviceID, app: app)
    phone.key = key
    return phone
  }
}

/// A trusted phone, and the remaining codes of its user.
private struct TrustedPhone: Sendable {
  let backend: TestBackend
  let phone: TestPhone
  let authenticator: TestAuthenticator
  let trust: String

  init(_ backend: TestBackend, app: AppInstance = .genuine()) async throws {
    self.backend = backend
    phone = TestPhone(username: "ada", app: app)
    (_, authenticator) = try await backend.setUp(phone)
    let answer = try await backend.verifyLogin(
      authenticator.backupCodes[0], phone, token: try await backend.pendingToken(phone), ["trust_device": true])
    trust = answer["trust_token"]?.text ?? ""
  }

  func signIn(_ wire: Wire = .rest, from address: String? = nil) async throws -> JSONValue {
    let phone = address.map { self.phone.at($0) } ?? self.phone
    return try await AppClient.with(backend, wire, as: phone.app) { client in
      let challenge = try await client.call("auth.initiate", phone.naming)
      return try await client.call(
        "auth.verify-signature",
        [
          "username": .string(phone.username), "deviceId": .string(phone.deviceID),
          "challengeId": challenge["challengeId"] ?? nil, "trustToken": .string(trust),
          "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
        ])
    }
  }

  func scope(_ wire: Wire = .rest, from address: String? = nil) async throws -> JSONValue? {
    let answer = try await signIn(wire, from: address)
    let scope = answer["scope"]
    if scope == nil { Issue.record("the sign-in is answered by \(answer)") }
    return scope
  }

  func stepUps() async throws -> [String] {
    try await backend.context.store.read { records in
      try records.auditEntries(before: .max, account: "ada", atMost: 1000)
        .filter { $0.event == "trust.stepped_up" }.map(\.detail)
    }
  }
}

@Suite("Trust by network and by risk")
struct RiskTests {
  private static let elsewhere = "198.51.100.7"

  private func withPhone(
    _ database: TestDatabase = .sqlite, app: AppInstance = .genuine(), _ change: (inout Policy) -> Void,
    _ body: (TrustedPhone) async throws -> Void
  ) async throws {
    var policy = Policy()
    change(&policy)
    try await TestBackend.with(store: try await database.open(), policy: policy) {
      try await body(TrustedPhone($0, app: app))
    }
  }

  @Test(
    "B-085 trust that is limited to known networks asks for the second factor once in a new network",
    arguments: TestDatabase.allCases, Wire.allCases)
  func place(_ database: TestDatabase, _ wire: Wire) async throws {
    try await withPhone(database) {
      $0.bindsTrustToNetwork = true
    } _: { ada async throws in
      #expect(try await ada.scope(wire) == "full")
      let first = try await ada.signIn(wire, from: Self.elsewhere)
      #expect(first["scope"] == "mfa")
      // An incomplete sign-in does not make the network known.
      #expect(try await ada.scope(wire, from: Self.elsewhere) == "mfa")
      let there = ada.phone.at(Self.elsewhere)
      // The app keeps its trust token.
      let status = try await ada.backend.get("/auth/mfa/status", as: there.app, token: first["token"]?.text ?? "")
      #expect(status["challenge_required"] == true && status["device_trusted"] == true)
      let given = try await ada.backend.verifyLogin(
        ada.authenticator.backupCodes[1], there, token: first["token"]?.text ?? "")
      #expect(given.status == 200)
      #expect(try await ada.scope(wire, from: Self.elsewhere) == "full")
      #expect(try await ada.scope(wire) == "full")
      #expect(try await ada.stepUps() == ["trusted=1 reason=network", "trusted=1 reason=network"])
    }
  }

  @Test(
    "B-085 a network is 24 bits of IPv4 or 48 of IPv6; an invalid address is never known",
    arguments: [
      ("192.0.2.1", "192.0.2.250", "full"), ("192.0.2.1", "192.0.3.1", "mfa"),
      ("2001:db8:1:2::1", "2001:db8:1:ffff::9", "full"), ("2001:db8:1::1", "2001:db8:2::1", "mfa"),
      ("::ffff:192.0.2.1", "192.0.2.9", "full"), ("unknown", "unknown", "mfa"),
    ] as [(String, String, JSONValue)])
  func networks(_ home: String, _ other: String, _ scope: JSONValue) async throws {
    var app = AppInstance.genuine()
    app.address = home
    try await withPhone(app: app) {
      $0.bindsTrustToNetwork = true
    } _: { ada async throws in
      #expect(try await ada.scope(from: other) == scope)
    }
  }

  @Test("B-085 a network that another phone of the account has used is not known for this phone's trust")
  func ofOthers() async throws {
    try await withPhone {
      $0.bindsTrustToNetwork = true
    } _: { ada async throws in
      let other = TestPhone(username: "ada").at(Self.elsewhere)
      let pending = try await ada.backend.pendingToken(ada.phone)
      let token = try await ada.backend.verifyLogin(ada.authenticator.backupCodes[1], ada.phone, token: pending)[
        "token"]
      #expect(try await ada.backend.link(other, to: ada.phone, token: token?.text ?? "").status == 200)
      let there = try await ada.backend.pendingToken(other)
      #expect(try await ada.backend.verifyLogin(ada.authenticator.backupCodes[2], other, token: there).status == 200)
      #expect(try await ada.scope(from: Self.elsewhere) == "mfa")
    }
  }

  @Test(
    "B-085 without a policy for it, trust is valid in every network, and no network is stored",
    arguments: TestDatabase.allCases)
  func off(_ database: TestDatabase) async throws {
    try await withPhone(database) { _ in
    } _: { ada async throws in
      #expect(try await ada.scope(from: Self.elsewhere) == "full")
      let isKept = try await ada.backend.context.store.read { records in
        try records.user(named: "ada").map {
          try records.isKnown(network: "192.0.2.0/24", of: $0.id, by: nil)
            || records.isKnown(network: "198.51.100.0/24", of: $0.id, by: nil)
        }
      }
      #expect(isKept == false)
    }
  }

  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String { "\(signals.map(\.rawValue).sorted()) against \(threshold)" }
    let signals: Set<Risk.Signal>
    let threshold: Int
    let isAsked: Bool
  }

  static let cases = [
    Case(signals: [], threshold: 1, isAsked: false),
    Case(signals: [.network], threshold: 40, isAsked: true), Case(signals: [.network], threshold: 41, isAsked: false),
    Case(signals: [.failures], threshold: 30, isAsked: true),
    Case(signals: [.failures], threshold: 31, isAsked: false),
    Case(signals: [.newDevice], threshold: 20, isAsked: true),
    Case(signals: [.newDevice], threshold: 21, isAsked: false),
    Case(signals: [.development], threshold: 20, isAsked: true),
    Case(signals: [.development], threshold: 21, isAsked: false),
    Case(signals: [.network, .failures], threshold: 70, isAsked: true),
    Case(signals: [.network, .newDevice], threshold: 61, isAsked: false),
    Case(signals: [.network, .failures, .newDevice, .development], threshold: 100, isAsked: true),
  ]

  @Test(
    "B-085 a trusted device must give the second factor from the operator's score on", arguments: cases,
    TestDatabase.allCases)
  func risk(_ risk: Case, _ database: TestDatabase) async throws {
    var app = AppInstance.genuine()
    if risk.signals.contains(.development) { app.environment = "development" }
    try await withPhone(database, app: app) {
      $0.stepUpScore = risk.threshold
    } _: { ada async throws in
      if !risk.signals.contains(.newDevice) { ada.backend.clock.advance(by: .seconds(86400)) }
      if risk.signals.contains(.failures) {
        let outsider = AppInstance.genuine()
        for _ in 1...5 {
          _ = try await ada.backend.post("/auth/verify-otp", ["username": "ada", "otp": "000000"], as: outsider)
        }
      }
      let scope = try await ada.scope(from: risk.signals.contains(.network) ? Self.elsewhere : nil)
      #expect(scope == (risk.isAsked ? "mfa" : "full"))
      let score = min(100, risk.signals.reduce(0) { $0 + $1.weight })
      let words = risk.signals.map(\.rawValue).sorted().joined(separator: ",")
      #expect(
        try await ada.stepUps() == (risk.isAsked ? ["trusted=1 reason=risk score=\(score) signals=\(words)"] : []))
    }
  }

  @Test("B-085 four refusals are no signal, and refusals expire after a quarter of an hour")
  func fewFailures() async throws {
    try await withPhone {
      $0.stepUpScore = 30
    } _: { ada async throws in
      ada.backend.clock.advance(by: .seconds(86400))
      let outsider = AppInstance.genuine()
      func fail() async throws {
        _ = try await ada.backend.post("/auth/verify-otp", ["username": "ada", "otp": "000000"], as: outsider)
      }
      for _ in 1...4 { try await fail() }
      #expect(try await ada.scope() == "full")
      try await fail()
      #expect(try await ada.scope() == "mfa")
      ada.backend.clock.advance(by: .seconds(901))
      #expect(try await ada.scope() == "full")
    }
  }

  @Test("B-085 a network without a sign-in for 90 days is unknown again", arguments: TestDatabase.allCases)
  func forgotten(_ database: TestDatabase) async throws {
    try await withPhone(database) {
      $0.stepUpScore = 40
    } _: { ada async throws in
      let (backend, store) = (ada.backend, ada.backend.context.store)
      func isKnown() async throws -> Bool? {
        try await store.read { records in
          try records.user(named: "ada").map { try records.isKnown(network: "192.0.2.0/24", of: $0.id, by: nil) }
        }
      }
      backend.clock.advance(by: .seconds(89 * 86400))
      try await RecordMaintenance(backend.context).clean()
      #expect(try await isKnown() == true)
      backend.clock.advance(by: .seconds(2 * 86400))
      try await RecordMaintenance(backend.context).clean()
      #expect(try await isKnown() == false)
    }
  }

  @Test("B-085 the guide lists each signal with its weight", arguments: Risk.Signal.allCases)
  func documented(_ signal: Risk.Signal) throws {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    #expect(guide.contains("| `\(signal.rawValue)` | \(signal.weight) |"))
  }
}

@Suite("Devices with biometry only")
struct BiometryTests {
  private func withBackend(_ body: (TestBackend) async throws -> Void) async throws {
    var policy = Policy()
    policy.deviceUnlock = .biometric
    try await TestBackend.with(policy: policy) { try await body($0) }
  }

  private func enrolment(
    _ phone: TestPhone, _ authMethod: String?, method: String = "secureEnclave"
  ) throws -> JSONValue {
    var body = try #require(phone.enrolment(method: method).members)
    body["authMethod"] = authMethod.map { .string($0) }
    return .object(body)
  }

  /// Changes the stored device, as if it had been enrolled before the policy was set.
  private func change(
    _ backend: TestBackend, _ phone: TestPhone, _ body: @escaping @Sendable (inout Device) -> Void
  ) async throws {
    let id = try DeviceID(phone.deviceID)
    try await backend.context.store.write { records in
      var device = try #require(try records.device(id))
      body(&device)
      try records.save(device)
    }
  }

  @Test(
    "B-085 only a key that biometry unlocks is enrolled, under a new name or an existing one", arguments: Wire.allCases)
  func enrolled(_ wire: Wire) async throws {
    try await withBackend { backend in
      let phone = TestPhone(username: "ada")
      try await AppClient.with(backend, wire, as: phone.app) { client in
        let refused = try [
          enrolment(phone, "passcode"), enrolment(phone, nil), enrolment(phone, nil, method: "smsOTP"),
          enrolment(phone, "biometric", method: "smsOTP"),
        ]
        var before: [JSONValue?] = []
        for body in refused {
          let answer = try await client.call("mfa.enroll", body)
          #expect(answer["code"] == "invalid_request")
          before.append(answer["message"])
        }
        #expect(try await client.call("mfa.enroll", enrolment(phone, "biometric"))["success"] == true)
        for (body, message) in zip(refused, before) {
          #expect(try await client.call("mfa.enroll", body)["message"] == message)
        }
        let token = try await client.signIn(phone)["token"]?.text
        var upgrade: [String: JSONValue] = [
          "username": "ada", "deviceId": .string(phone.deviceID), "publicKey": .string(phone.publicKey),
          "authMethod": "passcode",
        ]
        #expect(try await client.call("mfa.upgrade", .object(upgrade), token: token)["code"] == "invalid_request")
        upgrade["authMethod"] = "biometric"
        #expect(try await client.call("mfa.upgrade", .object(upgrade), token: token)["success"] == true)
        #expect(try await client.call("mfa.downgrade", phone.naming, token: token)["code"] == "forbidden")
      }
    }
  }

  @Test("B-085 a device from before the policy gets the refusal of an unknown user, and renews no session")
  func before() async throws {
    try await withBackend { backend in
      let phone = TestPhone(username: "ada")
      #expect(try await backend.post("/mfa/enroll", enrolment(phone, "biometric"), as: phone.app).status == 200)
      let session = try await backend.signIn(phone)
      #expect(session.status == 200)
      try await change(backend, phone) { $0.authMethod = .passcode }
      let refused = try await backend.signIn(phone)
      let outsider = try await backend.signIn(TestPhone(username: "nobody"))
      #expect(refused.status == 401 && refused["code"] == outsider["code"] && refused["message"] == outsider["message"])
      let entry = try await backend.context.store.read {
        try $0.auditEntries(before: .max, account: "ada", atMost: 1).first
      }
      #expect(entry?.event == "signature.refused" && entry?.detail.hasSuffix("reason=unlock") == true)
      let renewed = try await backend.post(
        "/auth/token/refresh", ["refreshToken": session["refreshToken"] ?? nil], as: phone.app)
      #expect(renewed.status == 401)
      try await change(backend, phone) { $0.authMethod = .biometric }
      #expect(try await backend.signIn(phone).status == 200)
    }
  }

  @Test("B-085 no code by SMS is sent or accepted, and the answers are the usual ones")
  func smsCode() async throws {
    try await withBackend { backend in
      let phone = TestPhone(username: "ada")
      #expect(try await backend.post("/mfa/enroll", enrolment(phone, "biometric"), as: phone.app).status == 200)
      let asked = try await backend.post(
        "/auth/request-otp", ["username": "ada", "phoneNumber": .string(phone.number)], as: phone.app)
      #expect(asked.status == 200)
      try await change(backend, phone) { device in
        device.method = .smsOTP
        device.publicKey = nil
      }
      #expect(try await backend.challenge(phone).status == 200)
      #expect(backend.outbox.messages.isEmpty)
      let guess = try await backend.post("/auth/verify-otp", ["username": "ada", "otp": "000000"], as: phone.app)
      #expect(guess["code"] == "invalid_code")
    }
  }
}
