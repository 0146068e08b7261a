import MFADomain
import MFAFixtures
import Testing

@Suite("Second factor")
struct SecondFactorTests {
  /// A phone whose sign-in waits for the second factor.
  private struct PendingFactor: Sendable {
    let backend: TestBackend
    let phone: TestPhone
    let authenticator: TestAuthenticator
    let pending: String

    func verify(_ code: String, _ more: [String: JSONValue] = [:]) async throws -> Answer {
      try await backend.verifyLogin(code, phone, token: pending, more)
    }

    func get(_ path: String, token: String? = nil) async throws -> Answer {
      try await backend.get(path, as: phone.app, token: token ?? pending)
    }

    /// Sends `code` 50 times at the same time, and returns the number of accepted requests.
    func accepted(of code: String) async throws -> Int {
      try await withThrowingTaskGroup { group in
        for _ in 1...50 { group.addTask { try await verify(code).status == 200 } }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
    }
  }

  /// Calls `body` with a phone whose sign-in waits for the second factor, `age` after the setup of its authenticator.
  private func withPendingFactor(
    after age: Duration = .zero, _ body: (PendingFactor) async throws -> Void
  ) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (_, authenticator) = try await backend.setUp(phone)
      backend.clock.advance(by: age)
      let pending = try await backend.pendingToken(phone)
      try await body(PendingFactor(backend: backend, phone: phone, authenticator: authenticator, pending: pending))
    }
  }

  @Test("B-022 the answer to a valid code has the documented fields and a token with full access")
  func verify() async throws {
    try await withPendingFactor { factor async throws in
      let answer = try await factor.verify(factor.authenticator.code())
      #expect(answer.status == 200)
      #expect(answer["message"] == "MFA verification successful")
      #expect(answer["user_id"]?.text?.count == 36)
      let token = answer["token"]?.text
      #expect(try await factor.get("/devices/testuser", token: token).status == 200)
    }
  }

  @Test(
    "B-073 a code of the previous or next step is accepted, and a code two steps away is refused",
    arguments: [(-2, 401), (-1, 200), (0, 200), (1, 200), (2, 401)])
  func skew(_ steps: Int64, _ status: Int) async throws {
    try await withPendingFactor(after: .seconds(120)) { factor async throws in
      #expect(try await factor.verify(factor.authenticator.code(steps)).status == status)
    }
  }

  @Test("T-23 B-073 a used code and earlier codes are refused with the answer to a wrong code")
  func noReplay() async throws {
    try await withPendingFactor(after: .seconds(120)) { factor async throws in
      #expect(try await factor.verify(factor.authenticator.code()).status == 200)
      for steps in [0, -1] as [Int64] {
        let answer = try await factor.verify(factor.authenticator.code(steps))
        #expect(answer.status == 401)
        #expect(answer["error"] == "Invalid code. Please try again.")
      }
    }
  }

  @Test("B-073 of 50 simultaneous uses of one code, one is accepted")
  func parallelCode() async throws {
    try await withPendingFactor { factor async throws in
      #expect(try await factor.accepted(of: factor.authenticator.code()) == 1)
    }
  }

  @Test("T-60 B-029 of 50 simultaneous uses of one backup code, one is accepted, and one fewer remains")
  func parallelBackup() async throws {
    try await withPendingFactor { factor async throws in
      #expect(try await factor.accepted(of: factor.authenticator.backupCodes[0]) == 1)
      let status = try await factor.get("/auth/mfa/status")
      #expect(status["backup_codes_remaining"] == 9)
    }
  }

  @Test("B-075 a backup code may be written in small letters and with dashes", arguments: ["ab-cd", "  "])
  func spelling(_ style: String) async throws {
    try await withPendingFactor { factor async throws in
      let code = factor.authenticator.backupCodes[0]
      let written =
        style == "  " ? "\(code.prefix(4)) \(code.suffix(4))" : "\(code.prefix(4))-\(code.suffix(4))".lowercased()
      #expect(try await factor.verify(written).status == 200)
    }
  }

  @Test("T-16 B-028 a session without its second factor can only read the status and give the factor")
  func pendingScope() async throws {
    try await withPendingFactor { factor async throws in
      #expect(try await factor.get("/auth/mfa/status").status == 200)
      for path in ["/auth/mfa/trusted-devices", "/devices/testuser", "/auth/notices"] {
        let answer = try await factor.get(path)
        #expect(answer.status == 403)
        #expect(answer["code"] == "mfa_required")
      }
      let unenrol = try await factor.backend.post(
        "/mfa/unenroll", factor.phone.naming, as: factor.phone.app, token: factor.pending)
      #expect(unenrol.status == 403)
      let disable = try await factor.backend.post(
        "/auth/mfa/disable", ["code": .string(factor.authenticator.code())], as: factor.phone.app,
        token: factor.pending)
      #expect(disable.status == 403)
    }
  }

  @Test("B-026 B-020 the status has the documented fields")
  func status() async throws {
    try await withPendingFactor { factor async throws in
      let answer = try await factor.get("/auth/mfa/status")
      #expect(
        answer.json == [
          "enabled": true, "enrolled_at": "2026-01-01T00:00:00Z", "backup_codes_remaining": 10,
          "trusted_devices_count": 0, "security_keys_count": 0, "required": false, "required_at": nil,
          "grace_period_end": nil, "in_grace_period": false, "challenge_required": true, "device_trusted": false,
          "methods": ["totp", "backup_code"], "policy": ["biometric_gate": true],
        ])
    }
  }

  @Test("B-021 a code is accepted only for the method that the request names")
  func namedMethod() async throws {
    try await withPendingFactor { factor async throws in
      let code = factor.authenticator.backupCodes[0]
      #expect(try await factor.verify(code, ["method": "totp"]).status == 401)
      #expect(try await factor.verify(code, ["method": "password"]).status == 400)
      #expect(try await factor.verify(code, ["method": "backup_code"]).status == 200)
    }
  }

  @Test("B-042 five wrong codes of any kind lock the second factor for a time")
  func lockout() async throws {
    try await withPendingFactor { factor async throws in
      for guess in ["000000", "ABCDEFGH", "11111111", "1", "ZZZZZZZ2"] {
        #expect(try await factor.verify(guess).status == 401)
      }
      #expect(try await factor.verify(factor.authenticator.backupCodes[0]).status == 429)
    }
  }

  @Test("X-020 a second factor satisfies an operation that requires a recent proof")
  func stepUp() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let (token, authenticator) = try await backend.setUp(phone)
      backend.clock.advance(by: .seconds(600))
      #expect(try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token).status == 401)
      #expect(try await backend.verifyLogin(authenticator.code(), phone, token: token).status == 200)
      #expect(try await backend.post("/mfa/unenroll", phone.naming, as: phone.app, token: token).status == 200)
    }
  }
}
