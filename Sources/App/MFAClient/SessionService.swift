internal import AttestClient
internal import Locking
public import MFAWire

/// Performs operations in the session of the signed-in user.
///
/// An access token that has expired is replaced by the refresh token, once for all calls that wait, and the operation is
/// repeated: the server had refused it. Calls from several tasks are safe. A session that begins or ends while a token is
/// replaced stays as it is, and an operation is never repeated in the session of another user.
public actor SessionService {
  /// A sign-in. It lasts until the session ends or another one begins: renewals and the second factor continue it.
  public struct Login: Sendable, Hashable {
    /// The account.
    public let username: String
    fileprivate let number: Int
    /// How often its session had been renewed.
    fileprivate let renewals: Int
  }

  private let backend: any MFABackend
  private let storage: any SecretStorage<MFASession>
  private let mutex = AsyncMutex()
  /// The session now; `nil` if the user is signed out.
  public private(set) var session: MFASession?
  /// The number of sessions that have begun or ended.
  private var number = 0
  private var renewals = 0
  /// The access tokens that renewals of the present sign-in have replaced before its second factor.
  private var replacedTokens: Set<String> = []

  /// Creates a service that continues the session of `storage`.
  public init(backend: any MFABackend, storage: any SecretStorage<MFASession>) {
    self.backend = backend
    self.storage = storage
    session = storage.load()
  }

  /// Begins `session`, or ends the session if it is `nil`. The server does not hear of the end.
  ///
  /// - Throws: if the change is not durable. It holds until the process exits.
  public func begin(_ session: MFASession?) throws(StorageError) {
    number += 1
    replacedTokens = []
    try keep(session)
  }

  private func keep(_ session: MFASession?) throws(StorageError) {
    self.session = session
    try storage.save(session)
  }

  /// The present sign-in; `nil` if the user is signed out.
  public var currentLogin: Login? { session.map { Login(username: $0.username, number: number, renewals: renewals) } }

  /// The present sign-in and its access token now, if `token` is that token, or one that a renewal has replaced before
  /// the second factor.
  public func login(of token: String) -> (login: Login, accessToken: String)? {
    guard let session, let login = currentLogin else { return nil }
    guard session.accessToken == token || replacedTokens.contains(token) else { return nil }
    return (login, session.accessToken)
  }

  /// Gives the session of `login` the tokens that the second factor has brought.
  ///
  /// A session that was renewed since `login` was read is either from before the second factor, or newer than
  /// `response`: then it has left the scope `mfa`, and the refresh token of `response` is spent. A newer session stays.
  ///
  /// - Returns: The session now; `nil` if `login` is over, which changes nothing.
  public func complete(_ login: Login, with response: TokenResponse) -> MFASession? {
    guard let session, login.number == number else { return nil }
    guard login.renewals == renewals || session.scope == "mfa" else { return session }
    let completed = MFASession(response, of: session.username)
    replacedTokens = []
    // A session that cannot be saved lasts until the process exits.
    try? keep(completed)
    return completed
  }

  /// Ends the session of `login`. A session that has begun since stays.
  func end(_ login: Login?) {
    guard let login, login.number == number else { return }
    try? begin(nil)
  }

  /// Performs `operation` with the access token of the session; without a session, with none.
  ///
  /// - Throws: what the backend throws. `session_required` means that the user must sign in; the session is then over.
  public func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request
  ) async throws(NetworkError) -> Response {
    let session = session
    do throws(NetworkError) {
      return try await backend.call(operation, request, token: session?.accessToken)
    } catch {
      guard let session, error.refusalCode == "session_required" else { throw error }
      // Operations without a session refuse a token that is no longer valid, too.
      let renewed = try await renew(session)
      return try await backend.call(operation, request, token: renewed?.accessToken)
    }
  }

  /// Returns the session that replaces `expired`; `nil` if the user is signed out, or another user is signed in.
  private func renew(_ expired: MFASession) async throws(NetworkError) -> MFASession? {
    guard await mutex.enter() else { throw .gate(.cancelled) }
    let result: Result<MFASession?, NetworkError>
    do throws(NetworkError) {
      result = .success(try await renewed(expired))
    } catch {
      result = .failure(error)
    }
    await mutex.leave()
    return try result.get()
  }

  private func renewed(_ expired: MFASession) async throws(NetworkError) -> MFASession? {
    // Another call may have renewed it in the meantime, or the user signed in again.
    guard let current = presentSession(of: expired.username) else { return nil }
    if current.accessToken != expired.accessToken { return current }
    let renewed: MFASession?
    do throws(NetworkError) {
      let answer = try await backend.call(
        MFAOperations.refreshToken, RefreshRequest(refreshToken: current.refreshToken), token: nil)
      renewed = MFASession(answer, of: current.username)
    } catch {
      guard case .refused(let refusal) = error, refusal.endsSession else { throw error }
      renewed = nil
    }
    // A session may have begun or ended during the call. The second factor gives a session another access token and
    // keeps its refresh token, which the renewal has spent.
    guard session?.refreshToken == current.refreshToken else { return presentSession(of: current.username) }
    renewals += 1
    if let session, session.scope == "mfa" { replacedTokens.insert(session.accessToken) }
    // A session that cannot be saved lasts until the process exits.
    try? keep(renewed)
    return renewed
  }

  /// The session now, if it is one of `username`.
  private func presentSession(of username: String) -> MFASession? { session?.username == username ? session : nil }
}

extension NetworkError {
  /// The code of the backend's refusal; `nil` if the backend did not refuse.
  public var refusalCode: String? { if case .refused(let refusal) = self { refusal.code } else { nil } }
}

extension BackendRefusal {
  /// Whether a refused refresh means that the session is over, not that the server is busy or the account locked.
  fileprivate var endsSession: Bool { code == "session_required" || code == "device_mismatch" }
}
