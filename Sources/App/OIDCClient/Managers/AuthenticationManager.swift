public import Foundation
internal import Locking

/// Coordinates signing in, for an app: state, tokens in a store, refresh, failover.
///
/// Its state is a snapshot behind a lock; calls from many tasks at once share one refresh.
public final class AuthenticationManager: AuthenticationManagerProtocol, Sendable {
  private let sessions: [(client: ProviderClient, session: AccountSession)]
  private let account: String
  private let store: any TokenStore
  private let biometry: (any BiometricCheck)?
  private let now: @Sendable () -> Date
  private let state: LockedValue<AuthenticationState>

  /// Signs in at the first of `clients`, and at the next ones while those before cannot be reached. Tokens are kept in
  /// `store` as `account`; those of an earlier run are found there.
  ///
  /// - Precondition: There is a client.
  public init(
    clients: [ProviderClient], store: any TokenStore, account: String, biometry: (any BiometricCheck)? = nil,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    precondition(!clients.isEmpty, "an authentication manager needs a provider")
    sessions = clients.map { ($0, AccountSession(account: account, client: $0, store: store)) }
    self.account = account
    self.store = store
    self.biometry = biometry
    self.now = now
    state = LockedValue(.unauthenticated)
    if isAuthenticated() { state.withLock { $0 = .authenticated(user: storedUser()) } }
  }

  /// A snapshot of the state.
  public var authenticationState: AuthenticationState { state.withLock { $0 } }

  /// Whether the store has an access token that has not expired. Asks for no biometry, and sends nothing.
  public func isAuthenticated() -> Bool {
    (try? store.account(account)).flatMap { $0 }.map { $0.expiresAt > now() } ?? false
  }

  /// Signs in with user name and password.
  ///
  /// - Throws: `SignInFieldError`, `AuthenticationError`.
  public func authenticate(username: String, password: String) async throws -> AuthenticationResult {
    let credentials = Credentials(username: username, password: password)
    try SignInFieldError.check(credentials)
    return try await signIn { client throws(OIDCError) in try await client.signIn(with: credentials) }
  }

  /// Signs in by any grant: `grant` is called with the first provider, and with the next ones while those before cannot be
  /// reached.
  ///
  /// - Throws: `AuthenticationError`.
  public func signIn(
    by grant: @Sendable (ProviderClient) async throws(OIDCError) -> StoredAccount
  ) async throws -> AuthenticationResult {
    state.withLock { $0 = .authenticating }
    do {
      let (tokens, session) = try await first(grant)
      try await session.replace(by: tokens)
      recordSignIn()
      return AuthenticationResult(providerID: tokens.providerID, user: tokens.user, tokens: tokens.tokens)
    } catch {
      throw failed(error)
    }
  }

  /// Renews the access token if less than a minute of it remains.
  ///
  /// - Returns: Whether there is a valid access token now. `false` if there are no tokens.
  /// - Throws: `AuthenticationError`. `.tokenExpired` is the end of it: a refresh that fails calls for no other refresh.
  public func refreshTokenIfNeeded() async throws -> Bool {
    do {
      guard let stored = try store.account(account) else {
        state.withLock { $0 = .unauthenticated }
        return false
      }
      try biometry?.check(reason: "renew your sign-in")
      guard let session = sessions.first(where: { $0.client.provider.id == stored.providerID })?.session else {
        throw SessionError.otherClient
      }
      do throws(SessionError) { _ = try await session.tokens() } catch {
        if case .signInNeeded(.refused) = error { try? await session.deleteRefused() }
        throw error
      }
      return recordSignIn()
    } catch SessionError.notSignedIn {
      // A logout has deleted the tokens meanwhile.
      state.withLock { $0 = .unauthenticated }
      return false
    } catch {
      throw failed(error)
    }
  }

  /// Revokes the tokens at the provider where it can be reached, and deletes them here in any case.
  ///
  /// Waits for a refresh in progress, also in a cancelled task. A refresh that takes more than a minute then stores
  /// nothing.
  public func logout() async {
    let provider = (try? store.account(account))?.providerID
    let session = (sessions.first { $0.client.provider.id == provider } ?? sessions[0]).session
    // Not a child of the caller: a cancelled task neither waits for the lock nor reaches the provider.
    await Task { await session.signOut() }.value
    state.withLock { $0 = .unauthenticated }
  }

  // MARK: Steps

  /// The first grant that succeeds. Only an error of the network leads to the next provider: a refusal is an answer.
  private func first(
    _ grant: (ProviderClient) async throws(OIDCError) -> StoredAccount
  ) async throws -> (StoredAccount, AccountSession) {
    var last: OIDCError?
    for (client, session) in sessions {
      do throws(OIDCError) { return (try await grant(client), session) } catch {
        guard error.permitsFailover else { throw error }
        last = error
      }
    }
    throw last ?? .notOffered("a provider")
  }

  /// Records that the user is signed in. Returns `false` if a logout has deleted the tokens since.
  @discardableResult
  private func recordSignIn() -> Bool {
    state.withLock { state in
      let isSignedIn = isStored
      state = isSignedIn ? .authenticated(user: storedUser()) : .unauthenticated
      return isSignedIn
    }
  }

  /// Whether the store has tokens, or cannot be read.
  private var isStored: Bool {
    do throws(TokenStoreError) { return try store.account(account) != nil } catch { return true }
  }

  private func storedUser() -> User {
    (try? store.account(account))?.user ?? User(id: account, username: account, email: nil, displayName: nil)
  }

  /// Records a failure.
  private func failed(_ error: any Error) -> AuthenticationError {
    let shown =
      switch error {
      case let error as AuthenticationError: error
      case let error as OIDCError: AuthenticationError(error)
      case let error as SessionError: AuthenticationError(error)
      case let error as TokenStoreError: AuthenticationError(error)
      default: AuthenticationError.networkError(underlying: error)
      }
    state.withLock { $0 = .error(shown) }
    return shown
  }
}
