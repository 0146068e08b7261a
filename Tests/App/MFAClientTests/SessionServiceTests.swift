import Locking
import MFAClient
import MFAWire
import Testing

@Suite("The session of the user")
struct SessionServiceTests {
  /// A server on which the access token `expired` is not valid any more. While it renews a session, `whileRenewing` runs.
  private final class RenewingBackend: MFABackend {
    private let tokens = LockedValue<[String?]>([])
    private let renewal = LockedValue<@Sendable () async -> Void>({})
    private let refusesRenewals: Bool

    init(refusesRenewals: Bool = false) { self.refusesRenewals = refusesRenewals }

    /// The token of each registration for push notifications.
    var received: [String?] { tokens.withLock { $0 } }

    func whileRenewing(_ body: @escaping @Sendable () async -> Void) { renewal.withLock { $0 = body } }

    func call<Request, Response>(
      _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
    ) async throws(NetworkError) -> Response {
      let ended = NetworkError.refused(
        BackendRefusal(status: 401, ErrorBody(message: "", code: "session_required", requestId: "r")))
      let answer: any WireValue
      if request is RefreshRequest {
        let body = renewal.withLock { $0 }
        await body()
        if refusesRenewals { throw ended }
        answer = SessionServiceTests.tokens("renewed", "r-2")
      } else {
        tokens.withLock { $0.append(token) }
        if token == "expired" { throw ended }
        answer = PushAddressState(active: true)
      }
      guard let answer = answer as? Response else { throw .malformed(requestID: nil, "answer") }
      return answer
    }
  }

  private static func tokens(_ access: String, _ refresh: String) -> TokenResponse {
    TokenResponse(token: access, message: "", refreshToken: refresh, expiresIn: 900, scope: "full")
  }

  private static func session(_ access: String, _ refresh: String, of username: String = "ada") -> MFASession {
    MFASession(tokens(access, refresh), of: username)
  }

  /// Performs an operation whose access token has expired, while the session becomes `other`.
  private func renew(
    refused: Bool = false, meanwhile other: MFASession?
  ) async throws -> (tokens: [String?], session: MFASession?, saved: MFASession?) {
    let backend = RenewingBackend(refusesRenewals: refused)
    let storage = MemorySecretStorage<MFASession>()
    storage.save(Self.session("expired", "r-1"))
    let service = SessionService(backend: backend, storage: storage)
    backend.whileRenewing { try? await service.begin(other) }
    _ = try await service.registerPush(token: "aa")
    return (backend.received, await service.session, storage.load())
  }

  @Test("a session that begins during a renewal stays, and the operation is repeated in it", arguments: [false, true])
  func begunMeanwhile(refused: Bool) async throws {
    let other = Self.session("signed-in", "r-9")
    let result = try await renew(refused: refused, meanwhile: other)
    #expect(result.tokens == ["expired", "signed-in"])
    #expect(result.session == other && result.saved == other)
  }

  @Test("an operation is not repeated in the session of another user", arguments: [false, true])
  func otherUser(refused: Bool) async throws {
    let other = Self.session("signed-in", "r-9", of: "bob")
    let result = try await renew(refused: refused, meanwhile: other)
    #expect(result.tokens == ["expired", nil])
    #expect(result.session == other && result.saved == other)
  }

  @Test("a user who signs out during a renewal stays signed out")
  func signedOutMeanwhile() async throws {
    let result = try await renew(meanwhile: nil)
    #expect(result.tokens == ["expired", nil])
    #expect(result.session == nil && result.saved == nil)
  }

  @Test("a second factor during a renewal keeps the refresh token, which is spent: the renewed session replaces it")
  func secondFactorMeanwhile() async throws {
    let result = try await renew(meanwhile: Self.session("second-factor", "r-1"))
    #expect(result.tokens == ["expired", "renewed"])
    #expect(result.session == Self.session("renewed", "r-2") && result.saved == result.session)
  }

  @Test("a refused renewal ends the session that it was for")
  func refused() async throws {
    let result = try await renew(refused: true, meanwhile: Self.session("expired", "r-1"))
    #expect(result.tokens == ["expired", nil])
    #expect(result.session == nil && result.saved == nil)
  }
}
