import MFADomain
import MFAFixtures
import MFAService
import Testing

@Suite("Access to operations")
struct AccessTests {
  /// A body with the parameters of all operations.
  private static let allParameters: JSONValue = [
    "username": "testuser", "deviceId": "d", "code": "000000", "pushId": "00000000-0000-4000-8000-000000000000",
    "id": "1", "email": "a@example.com", "publicKey": .string(TestPhone().publicKey), "approve": false,
    "signature": "MEUCIQDAAAAA", "token": "aaaaaaaaaaaaaaaaaaaaaaaa",
  ]

  @Test("A-072 an operation that requires a session refuses a caller without one", arguments: Wire.allCases)
  func sessions(_ wire: Wire) async throws {
    try await TestBackend.with { backend in
      let closed = backend.operations.filter { $0.access != .attested }
      #expect(closed.count > 20)
      try await AppClient.with(backend, wire, as: .genuine()) { client in
        for operation in closed {
          let answer = try await client.call(operation.name, Self.allParameters)
          #expect(answer["code"] == "session_required", "\(operation.name)")
        }
      }
    }
  }

  @Test("A-072 an operation for admins refuses the session of another user", arguments: Wire.allCases)
  func admins(_ wire: Wire) async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone()
      let token = try await backend.token(phone)
      try await AppClient.with(backend, wire, as: phone.app) { client in
        for operation in backend.operations where operation.access == .admin {
          let answer = try await client.call(operation.name, Self.allParameters, token: token)
          #expect(answer["code"] == "forbidden", "\(operation.name)")
        }
      }
    }
  }
}
