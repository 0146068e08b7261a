import Foundation
import MFADomain
import MFAFixtures
import MFAService
import MFAWire
import TestSupport
import Testing

@Suite("The life of a device")
struct DeviceLifeTests {
  @Test("A-144 devices are enrolled, listed, removed and enrolled again, by each transport", arguments: Wire.allCases)
  func life(_ wire: Wire) async throws {
    try await TestBackend.with { backend in
      let (first, second) = (TestPhone(deviceID: "first"), TestPhone(deviceID: "second"))
      let token = try await backend.token(first)
      _ = try await backend.link(second, to: first, token: token)
      try await AppClient.with(backend, wire, as: first.app) { client in
        func listed() async throws -> [String?] {
          let list = try await client.call("devices.list", ["username": "testuser"], token: token)
          return (0..<(list["devices"]?.count ?? 0)).map { list["devices"]?[$0]?["deviceId"]?.text }
        }
        #expect(try await listed() == ["first", "second"])
        let gone = try await client.call("mfa.unenroll", second.naming, token: token)
        #expect(gone["message"] == "Device unenrolled")
        #expect(try await listed() == ["first"])
        #expect(try await backend.challenge(second).status == 404)
        // A removed device is enrolled like a new one, and not by itself.
        #expect(try await backend.enrol(second).status == 401)
        #expect(try await backend.link(second, to: first, token: token).status == 200)
        #expect(try await listed() == ["first", "second"])
      }
    }
  }

  @Test("A-170 a client that uses the wire types and the server encode the same JSON")
  func wireTypes() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      func call<Response: Decodable>(
        _ path: String, _ request: some Encodable, as type: Response.Type
      ) async throws -> Response {
        let answer = try await backend.send(
          "POST", "/api/v1" + path, text: String(decoding: try JSONEncoder().encode(request), as: UTF8.self),
          assertion: try await backend.gate.assertion(for: phone.app))
        return try JSONDecoder().decode(Response.self, from: answer.body)
      }
      let enrolled = try await call(
        "/mfa/enroll",
        EnrollRequest(
          username: phone.username, phoneNumber: phone.number, publicKey: phone.publicKey, method: "secureEnclave",
          deviceId: phone.deviceID, deviceModel: nil), as: EnrollResponse.self)
      #expect(enrolled.success && enrolled.deviceId == phone.deviceID)
      let challenge = try await call(
        "/auth/initiate", DeviceRequest(username: phone.username, deviceId: phone.deviceID), as: ChallengeResponse.self)
      let tokens = try await call(
        "/auth/verify-signature",
        VerifySignatureRequest(
          username: phone.username, deviceId: phone.deviceID, challengeId: challenge.challengeId,
          signature: try phone.sign(challenge.challenge)), as: TokenResponse.self)
      #expect(tokens.scope == "full")
      let refusal = try await call(
        "/auth/verify-otp", VerifyOTPRequest(username: phone.username, otp: "000000"), as: ErrorBody.self)
      #expect(refusal.code == "invalid_code" && !refusal.success)
    }
  }

  @Test("A-145 the guide lists every refusal under its status")
  func documented() throws {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    var written: [String: Set<Int>] = [:]
    for line in guide.split(separator: "\n") where line.hasPrefix("| ") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count >= 2 else { continue }
      let statuses = cells[0].split(separator: ",").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
      let codes = cells[1].split(separator: ",").map { $0.trimmingCharacters(in: [" ", "`"]) }
      for (index, code) in codes.enumerated() where !statuses.isEmpty {
        written[code, default: []].insert(statuses.count == 1 ? statuses[0] : statuses[index])
      }
    }
    for code in RefusalCode.allCases where code != .internalError {
      #expect(written[code.rawValue] == [code.status], "\(code.rawValue)")
    }
  }

  @Test("A-146 the log has a line with the request id for each decision, and the reason for each refusal")
  func logged() async throws {
    let log = CapturedLog()
    try await TestBackend.with(logger: log.logger) { backend in
      let phone = TestPhone()
      _ = try await backend.send(
        "POST", "/api/v1/mfa/enroll", phone.enrolment(), as: phone.app, headers: [("X-Request-Id", "one")])
      _ = try await backend.send(
        "POST", "/api/v1/auth/verify-otp", ["username": "testuser", "otp": "12345"], as: phone.app,
        headers: [("X-Request-Id", "two")])
      _ = try await backend.send(
        "POST", "/api/v1/auth/initiate", text: "{}", assertion: "a.b.c", headers: [("X-Request-Id", "three")])
      func line(_ id: String) -> CapturedLog.Line? { log.lines.first { $0.metadata["request_id"] == id } }
      #expect(line("one")?.message == "operation completed" && line("one")?.metadata["operation"] == "mfa.enroll")
      #expect(line("two")?.message == "operation refused" && line("two")?.metadata["code"] == "invalid_code")
      #expect(line("three")?.message == "identity refused" && line("three")?.metadata["reason"] != nil)
      let text = log.lines.flatMap { [$0.message] + $0.metadata.values }.joined(separator: "\n")
      #expect(!text.contains("12345") && !text.contains(phone.number))
    }
  }

  @Test("A-173 the history records security-relevant events with account and actor")
  func history() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      let pending = try await backend.pendingToken(phone)
      _ = try await backend.verifyLogin("000000", phone, token: pending)
      _ = try await backend.verifyLogin(authenticator.backupCodes[0], phone, token: pending, ["trust_device": true])
      _ = try await backend.post(
        "/auth/mfa/regenerate-backup-codes", ["code": .string(authenticator.backupCodes[1])], as: phone.app,
        token: token)
      let challenge = try await backend.challenge(phone)
      var proof = try #require(try backend.proof(phone, of: challenge).members)
      proof["signature"] = "MAYCAQECAQE="
      _ = try await backend.post("/auth/verify-signature", .object(proof), as: phone.app)
      _ = try await backend.post("/auth/token/revoke", [:], as: phone.app, token: token)
      _ = try await backend.post("/mfa/downgrade", phone.naming, as: phone.app)
      let entries = try await backend.context.store.read {
        try $0.auditEntries(before: .max, account: "testuser", atMost: 100)
      }
      #expect(entries.allSatisfy { $0.actor == phone.app.keyHash })
      let expected: [AuditEvent] = [
        .deviceEnrolled, .signatureAccepted, .totpOffered, .totpConfirmed, .codeRefused, .deviceTrusted,
        .backupCodesMade, .signatureRefused, .deviceDowngraded, .sessionRevoked,
      ]
      #expect(Set(entries.map(\.event)).isSuperset(of: expected.map(\.rawValue)))
    }
  }

  @Test("B-066 trust can be revoked from the list of trusted devices, and the next sign-in needs the second factor")
  func revokedTrust() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      let pending = try await backend.pendingToken(phone)
      let verified = try await backend.verifyLogin(
        authenticator.code(), phone, token: pending, ["trust_device": true])
      let (token, trust) = (verified["token"]?.text, verified["trust_token"] ?? .null)
      func scope() async throws -> JSONValue? {
        let challenge = try await backend.challenge(phone)
        var proof = try #require(try backend.proof(phone, of: challenge).members)
        proof["trustToken"] = trust
        return try await backend.post("/auth/verify-signature", .object(proof), as: phone.app)["scope"]
      }
      #expect(try await scope() == "full")
      let list = try await backend.get("/auth/mfa/trusted-devices", as: phone.app, token: token)
      let id = try #require(list["devices"]?[0]?["id"]?.int)
      let revoked = try await backend.send(
        "DELETE", "/api/v1/auth/mfa/trusted-devices/\(id)", as: phone.app, token: token)
      #expect(revoked["message"] == "Trusted device revoked successfully")
      #expect(try await scope() == "mfa")
    }
  }
}
