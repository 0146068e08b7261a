import ByteCoding
import MFADomain
import MFAFixtures
import Testing

@Suite("Requirement of a second factor")
struct ObligationTests {
  private static let everyone = policy(.everyone)
  private static let week = Duration.seconds(7 * 86400)

  private static func policy(_ obligation: Policy.SecondFactorPolicy) -> Policy {
    var policy = Policy()
    policy.secondFactorPolicy = obligation
    return policy
  }

  @Test("B-087 during the grace period, a user gets a notice and full access")
  func grace() async throws {
    try await TestBackend.with(policy: Self.everyone) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(status["required"] == true && status["in_grace_period"] == true)
      #expect(status["required_at"] == "2026-01-01T00:00:00Z")
      #expect(status["grace_period_end"] == "2026-01-08T00:00:00Z")
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 200)
    }
  }

  @Test("B-087 after the grace period, a sign-in permits only the setup of a factor, and then full access")
  func blocked() async throws {
    try await TestBackend.with(policy: Self.everyone) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      backend.clock.advance(by: Self.week)
      let answer = try await backend.signIn(phone)
      #expect(answer["scope"] == "mfa_setup")
      let token = answer["token"]?.text ?? ""
      let list = try await backend.get("/devices/testuser", as: phone.app, token: token)
      #expect(list.status == 403 && list["code"] == "mfa_required")
      let link = try await backend.post("/mfa/link", [:], as: phone.app, token: token)
      #expect(link.status == 403)
      // The approval of another device does not replace the setup.
      let push = try await backend.post("/auth/push/start", [:], as: phone.app, token: token)
      #expect(push.status == 403 && push["code"] == "mfa_required")
      let authenticator = try await backend.offerAuthenticator(phone, token: token)
      let confirmed = try await backend.post(
        "/auth/mfa/verify-enrollment", ["code": .string(authenticator.code())], as: phone.app, token: token)
      #expect(confirmed.status == 200)
      #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 200)
    }
  }

  @Test("B-087 a session from the grace period is blocked at its first renewal after it")
  func renewed() async throws {
    try await TestBackend.with(policy: Self.everyone) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let refresh = try await backend.signIn(phone)["refreshToken"] ?? .null
      backend.clock.advance(by: Self.week)
      let renewed = try await backend.post("/auth/token/refresh", ["refreshToken": refresh], as: phone.app)
      #expect(renewed["scope"] == "mfa_setup")
      let list = try await backend.get("/devices/testuser", as: phone.app, token: renewed["token"]?.text)
      #expect(list.status == 403)
    }
  }

  @Test("B-087 a requirement for admins does not apply to other users")
  func admins() async throws {
    try await TestBackend.with(policy: Self.policy(.admins)) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      backend.clock.advance(by: Self.week)
      #expect(try await backend.signIn(phone)["scope"] == "full")
      try await Administration(backend.context).setAdmin(true, Username("testuser"), by: .command(name: "test"))
      backend.clock.advance(by: Self.week)
      #expect(try await backend.signIn(phone)["scope"] == "mfa_setup")
    }
  }

  @Test("B-087 the grace period of a new admin begins with the appointment")
  func lateAdmin() async throws {
    try await TestBackend.with(policy: Self.policy(.admins)) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      backend.clock.advance(by: .seconds(30 * 86400))
      let administration = Administration(backend.context)
      try await administration.setAdmin(true, Username("testuser"), by: .command(name: "test"))
      let token = try await backend.signIn(phone)["token"]?.text
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(status["required_at"] == "2026-01-31T00:00:00Z" && status["in_grace_period"] == true)
      backend.clock.advance(by: .seconds(6 * 86400))
      #expect(try await backend.signIn(phone)["scope"] == "full")
      // A second appointment does not prolong the grace period.
      try await administration.setAdmin(true, Username("testuser"), by: .command(name: "test"))
      backend.clock.advance(by: .seconds(86400))
      #expect(try await backend.signIn(phone)["scope"] == "mfa_setup")
    }
  }

  @Test(
    "B-087 the grace period of an older account begins with the first start under the policy",
    arguments: TestDatabase.allCases)
  func latePolicy(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let start = ManualClock().now.advanced(by: .seconds(30 * 86400))
    var policy = Self.everyone
    try await policy.datePolicy(in: store, at: start)
    // Later starts under the policy keep the date.
    try await policy.datePolicy(in: store, at: start.advanced(by: .seconds(86400)))
    #expect(policy.policySince == start)
    try await TestBackend.with(store: store, policy: policy) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      backend.clock.advance(by: .seconds(36 * 86400))
      #expect(try await backend.signIn(phone)["scope"] == "full")
      backend.clock.advance(by: .seconds(86400))
      #expect(try await backend.signIn(phone)["scope"] == "mfa_setup")
    }
    // A start under another policy removes the date. The next start under this policy sets a new one.
    var other = Policy()
    try await other.datePolicy(in: store, at: start)
    #expect(other.policySince == nil)
    try await policy.datePolicy(in: store, at: start.advanced(by: .seconds(172_800)))
    #expect(policy.policySince == start.advanced(by: .seconds(172_800)))
  }

  @Test("B-062 the status reports whether the policy allows a biometric gate in the app", arguments: [true, false])
  func biometricGate(_ isAllowed: Bool) async throws {
    var policy = Policy()
    policy.allowsBiometricGate = isAllowed
    try await TestBackend.with(policy: policy) { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      let status = try await backend.get("/auth/mfa/status", as: phone.app, token: token)
      #expect(status["policy"]?["biometric_gate"] == .bool(isAllowed))
    }
  }
}
