import Foundation
import Locking
import MFAClient
import MFAWire
import Testing

@Suite("Registration for push notifications")
struct PushRegistrationTests {
  /// A server that answers each registration, and keeps what it got.
  private final class RegisteringBackend: MFABackend {
    struct Call: Sendable, Hashable {
      let name: String
      let request: String
      let token: String?
    }

    private let calls = LockedValue<[Call]>([])
    var received: [Call] { calls.withLock(\.self) }

    func call<Request, Response>(
      _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
    ) async throws(NetworkError) -> Response {
      do {
        let body = String(decoding: try JSONEncoder().encode(request), as: UTF8.self)
        calls.withLock { $0.append(Call(name: operation.name, request: body, token: token)) }
        return try JSONDecoder().decode(
          Response.self, from: Data(#"{"active":\#(operation.name == "push.register")}"#.utf8))
      } catch {
        throw .malformed(requestID: nil, "\(error)")
      }
    }
  }

  @Test("a device token is sent in hexadecimal digits, a registration token as it is, both in the session of the user")
  func register() async throws {
    let (backend, storage) = (RegisteringBackend(), MemorySecretStorage<MFASession>())
    let json = #"{"success":true,"message":"","token":"access","refreshToken":"r","expiresIn":900,"scope":"full"}"#
    let response = try JSONDecoder().decode(TokenResponse.self, from: Data(json.utf8))
    storage.save(MFASession(response, of: "ada"))
    let service = SessionService(backend: backend, storage: storage)
    #expect(try await service.registerPush(deviceToken: [0x00, 0x0A, 0xFF]))
    #expect(try await service.registerPush(token: "fcm:Token"))
    try await service.unregisterPush()
    #expect(
      backend.received == [
        .init(name: "push.register", request: #"{"token":"000aff"}"#, token: "access"),
        .init(name: "push.register", request: #"{"token":"fcm:Token"}"#, token: "access"),
        .init(name: "push.unregister", request: "{}", token: "access"),
      ])
  }
}
