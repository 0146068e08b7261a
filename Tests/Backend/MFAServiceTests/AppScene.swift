import MFADomain
import MFAFixtures
import OneTimePasswords
import Testing

/// A phone whose session has set up the first app, at a backend.
struct AppScene: Sendable {
  let backend: TestBackend
  let phone: TestPhone
  let token: String
  let first: TestAuthenticator
  let client: AppClient

  static let operatorName = Administration.Actor.command(name: "uid 0")

  static func with(
    _ wire: Wire = .rest, _ database: TestDatabase = .sqlite, _ body: (AppScene) async throws -> Void
  ) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone()
      let (token, first) = try await backend.setUp(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        try await body(AppScene(backend: backend, phone: phone, token: token, first: first, client: client))
      }
    }
  }

  /// An offered app.
  struct Offered: Sendable {
    let id: JSONValue
    let secret: [UInt8]
    let clock: ManualClock

    func code(_ steps: Int64 = 0) -> JSONValue {
      let parameters = TOTPParameters.standard
      return .string(parameters.code(secret, step: parameters.step(at: clock.now) + steps))
    }
  }

  func offer(_ name: String = "Tablet", token: String? = nil) async throws -> Offered {
    let answer = try await client.call(
      "mfa.offer-authenticator", ["name": .string(name)], token: token ?? self.token)
    let secret = try #require(answer["secret"]?.text, "\(answer)")
    return Offered(
      id: try #require(answer["id"]), secret: try Base32.decode(secret), clock: backend.clock)
  }

  func confirm(_ offered: Offered, _ code: JSONValue? = nil, token: String? = nil) async throws -> JSONValue {
    try await client.call(
      "mfa.confirm-authenticator", ["id": offered.id, "code": code ?? offered.code()], token: token ?? self.token)
  }

  func added(_ name: String = "Tablet") async throws -> Offered {
    let offered = try await offer(name)
    let entry = try await confirm(offered)
    #expect(entry["id"] == offered.id, "\(entry)")
    return offered
  }

  func remove(_ id: JSONValue, token: String? = nil) async throws -> JSONValue {
    try await client.call("mfa.remove-authenticator", ["id": id], token: token ?? self.token)
  }

  func list() async throws -> [JSONValue] {
    let list = try #require(try await client.call("mfa.authenticators", token: token)["authenticators"])
    return (0..<(list.count ?? 0)).compactMap { list[$0] }
  }

  /// The status of a sign-in by `code`.
  func signIn(_ code: JSONValue) async throws -> Int {
    let pending = try await backend.pendingToken(phone)
    return try await backend.verifyLogin(try #require(code.text), phone, token: pending).status
  }

  /// Another session of the same phone that has given the second factor.
  func otherSession() async throws -> String {
    let pending = try await backend.pendingToken(phone)
    let answer = try await backend.verifyLogin(first.code(), phone, token: pending)
    return try #require(answer["token"]?.text, "\(answer)")
  }

  func history() async throws -> [AuditEntry] {
    try await Administration(backend.context).history(
      of: Username(phone.username), before: nil, atMost: 1000, by: Self.operatorName)
  }
}
