internal import Foundation
internal import Wire
internal import Locking

/// The tokens of one account: always valid, refreshed once however many ask.
///
/// Tasks of a process share one refresh. Processes exclude one another with the account's lock; the one that gets it reads
/// the store again and refreshes only if no other has. Before a refresh token is sent, the store says so; the new tokens are
/// in the store before they are returned. So a process that is killed at any point loses at most the answer that was on its
/// way, and the next one knows that.
///
/// An account that is deleted during its refresh stays deleted, and its new tokens are revoked.
public actor AccountSession {
  /// The longest wait for another process, in seconds.
  private static let longestWait: TimeInterval = 60

  /// The account's name in the store.
  public nonisolated let account: String
  private let client: ProviderClient
  private let store: any TokenStore
  private var flight: Task<Result<StoredAccount, SessionError>, Never>?

  /// Uses the account called `account` of `store`, at the provider of `client`.
  public init(account: String, client: ProviderClient, store: any TokenStore) {
    self.account = account
    self.client = client
    self.store = store
  }

  /// Tokens with a valid access token.
  ///
  /// - Parameter rejected: An access token that a service answered with 401, although it has not expired.
  /// - Throws: `SessionError`. With `.uncertain`, nothing was deleted, and the next call tries once.
  public func tokens(rejecting rejected: String? = nil) async throws(SessionError) -> StoredAccount {
    while true {
      let seen = try known()
      if let seen, let account = try usable(seen, rejecting: rejected) { return account }
      guard let flight else { return try await fly(rejecting: rejected, after: seen) }
      let result = await flight.value
      // The first that resumes clears it, so that no caller joins a flight that has ended.
      if self.flight == flight { self.flight = nil }
      // A flight that began before the rejection may bring the rejected token. Then one caller starts the next flight, and
      // the others join it.
      if case .success(let account) = result, account.tokens.accessToken == rejected { continue }
      return try result.get()
    }
  }

  /// The newest ID token, with a minute of its lifetime left, or half of it, if the provider issues such a one.
  ///
  /// The tokens are renewed for it. Most providers then send an ID token without the nonce of the sign-in.
  ///
  /// - Throws: `SessionError`; `.provider(.notOffered)` if there is none that has not expired.
  public func idToken() async throws(SessionError) -> IDToken {
    guard !client.provider.isOfMachine else { throw .provider(.notOffered("ID tokens for a machine account")) }
    let seen = try stored()
    if let token = seen.newestIDToken, remaining(of: token) >= token.margin { return token }
    let failure: SessionError
    do throws(SessionError) {
      if let token = try await tokens(rejecting: seen.tokens.accessToken).newestIDToken, remaining(of: token) > 0 {
        return token
      }
      failure = .provider(
        .notOffered(
          seen.newestIDToken == nil
            ? "ID tokens: the scope openid is missing" : "a new ID token with a refresh: sign in again"))
    } catch {
      failure = error
    }
    // What could not be renewed serves until it expires.
    if let token = try stored().newestIDToken, remaining(of: token) > 0 { return token }
    throw failure
  }

  private func remaining(of token: IDToken) -> TimeInterval {
    token.claims.expiresAt?.timeIntervalSince(client.dependencies.now()) ?? 0
  }

  /// Stores the tokens of a new sign-in.
  public func replace(by tokens: StoredAccount) async throws(SessionError) {
    let lock = try await lock { () throws(SessionError) in nil }
    defer { lock?.release() }
    do { try store.write(tokens, as: account) } catch { throw .store(error) }
  }

  /// Deletes the tokens here, after an attempt to revoke them at the provider.
  ///
  /// - Returns: Why they were not revoked; `nil` if they were, or there were none. Tokens of another provider or client
  ///   than that of the configuration are sent nowhere.
  public func logOut() async throws(SessionError) -> OIDCError? {
    let lock = try await lock { () throws(SessionError) in nil }
    defer { lock?.release() }
    var fault: OIDCError?
    do {
      if let stored = try store.account(account) {
        // A refresh token goes to the server that issued it alone (RFC 6749, section 10.4).
        if isOfClient(stored) {
          do throws(OIDCError) { try await client.revoke(stored) } catch { fault = error }
        } else {
          fault = .notOffered("revocation of tokens that another provider or client has")
        }
      }
    } catch {
      // Tokens that cannot be read cannot be revoked, but they can be deleted.
      fault = .notOffered("revocation of tokens that cannot be read: \(error)")
    }
    do throws(TokenStoreError) { try store.delete(account) } catch { throw .store(error) }
    return fault
  }

  /// Deletes the tokens here in any case, after an attempt to revoke them at the provider.
  ///
  /// If a refresh holds the lock for too long, the tokens are deleted all the same: it then stores nothing, and revokes
  /// what it has received.
  func signOut() async {
    do throws(SessionError) { _ = try await logOut() } catch { try? store.delete(account) }
  }

  /// Deletes the account if the provider has certainly refused its refresh token. An account that was replaced since stays.
  func deleteRefused() async throws(SessionError) {
    let lock = try await lock { () throws(SessionError) in nil }
    defer { lock?.release() }
    guard case .refused(_, afterLostAnswer: false) = try stored().refreshState else { return }
    do { try store.delete(account) } catch { throw .store(error) }
  }

  // MARK: One refresh

  private func fly(rejecting rejected: String?, after seen: StoredAccount?) async throws(SessionError) -> StoredAccount
  {
    // Not a child of the caller: a caller that gives up must not break off what others wait for.
    let task = Task<Result<StoredAccount, SessionError>, Never> {
      do throws(SessionError) {
        guard let seen, !seen.isOfMachine else { return .success(try await ask(rejecting: rejected)) }
        return .success(try await refresh(rejecting: rejected, after: seen))
      } catch {
        return .failure(error)
      }
    }
    flight = task
    let result = await task.value
    if flight == task { flight = nil }
    return try result.get()
  }

  /// The stored account if it can be used as it is.
  private func usable(_ account: StoredAccount, rejecting rejected: String?) throws(SessionError) -> StoredAccount? {
    switch RefreshDecision(account, at: client.dependencies.now(), rejected: rejected) {
    case .use: return account
    case .refresh, .tryOnce: return nil
    case .wait(let end): throw .postponed(Int(end.timeIntervalSince(client.dependencies.now()).rounded(.up)))
    case .signIn(let reason): throw .signInNeeded(reason)
    }
  }

  private func stored() throws(SessionError) -> StoredAccount {
    guard let found = try known() else { throw .notSignedIn }
    return found
  }

  /// The stored account; `nil` for a machine account that has no tokens yet.
  private func known() throws(SessionError) -> StoredAccount? {
    let found: StoredAccount?
    do { found = try store.account(account) } catch { throw .store(error) }
    guard found != nil || client.provider.isOfMachine else { throw .notSignedIn }
    guard found.map(isOfClient) ?? true else { throw .otherClient }
    return found
  }

  /// Whether the provider of `client` has issued the tokens, to this client.
  private nonisolated func isOfClient(_ account: StoredAccount) -> Bool {
    let provider = client.provider
    // Without an issuer, the name alone says which provider has issued the tokens.
    return account.issuer == provider.issuer && account.clientID == provider.clientID
      && (account.issuer != nil || account.providerID == provider.id)
      && account.isOfMachine == provider.isOfMachine
  }

  /// Takes the account's lock. While another process holds it, asks `meanwhile` whether the wait is over already.
  ///
  /// - Returns: `nil` if `meanwhile` returned a value.
  private func lock(
    or meanwhile: () throws(SessionError) -> StoredAccount?
  ) async throws(SessionError) -> (any TokenLock)? {
    let clock = client.dependencies
    let end = clock.now().addingTimeInterval(Self.longestWait)
    while true {
      do { if let lock = try store.lock(account) { return lock } } catch { throw .store(error) }
      if try meanwhile() != nil { return nil }
      // In a cancelled task a pause takes no time.
      guard clock.now() < end, !Task.isCancelled else { throw .busy }
      // Of many that wait, not all ask at once.
      await clock.sleep(.milliseconds(10 + Int(clock.random(1).first ?? 0) / 8))
    }
  }

  /// Refreshes the tokens of `seen`, unless another process does meanwhile.
  private func refresh(rejecting rejected: String?, after seen: StoredAccount) async throws(SessionError)
    -> StoredAccount
  {
    func found() throws(SessionError) -> StoredAccount? {
      let account = try stored()
      return account.isRenewed(since: seen, rejecting: rejected, at: client.dependencies.now())
        ? account : try usable(account, rejecting: rejected)
    }
    guard let lock = try await lock(or: found) else {
      guard let account = try found() else { return try await refresh(rejecting: rejected, after: seen) }
      return account
    }
    defer { lock.release() }
    if let account = try found() { return account }
    return try await exchange(try stored(), rejecting: rejected)
  }

  /// Asks for a token of the client itself, unless another process does meanwhile.
  private func ask(rejecting rejected: String?) async throws(SessionError) -> StoredAccount {
    func found() throws(SessionError) -> StoredAccount? {
      guard let account = try known() else { return nil }
      return try usable(account, rejecting: rejected)
    }
    guard let lock = try await lock(or: found) else {
      guard let account = try found() else { return try await ask(rejecting: rejected) }
      return account
    }
    defer { lock.release() }
    let before = try known()
    if let before, let account = try usable(before, rejecting: rejected) { return account }
    let failure: OIDCError
    switch await ownTokens() {
    case .success(let account):
      try await write(account, over: before)
      return account
    case .failure(let error): failure = error
    }
    guard var old = try known() else { throw .provider(failure) }
    if let pause = failure.pause {
      old.refreshState = .paused(until: client.dependencies.now().addingTimeInterval(TimeInterval(pause)))
      try await write(old, over: old)
    }
    if old.tokens.accessToken != rejected, old.expiresAt > client.dependencies.now() { return old }
    throw failure.pause.map { .postponed($0) } ?? .provider(failure)
  }

  /// A token of the client itself. Nothing is spent by the request, so that it is repeated if there is no answer.
  private func ownTokens() async -> Result<StoredAccount, OIDCError> {
    var number = 1
    while true {
      do throws(OIDCError) { return .success(try await client.ownTokens()) } catch {
        guard error.permitsFailover, number < Backoff.attempts else { return .failure(error) }
      }
      await client.dependencies.sleep(Backoff.pause(after: number, random: client.dependencies.random(1).first ?? 0))
      number += 1
    }
  }

  /// Exchanges the refresh token of `old`, whose lock is held.
  private func exchange(_ old: StoredAccount, rejecting rejected: String?) async throws(SessionError) -> StoredAccount {
    var number = 1
    while true {
      let failed: FailedRefresh
      switch try await attempt(old) {
      case .success(let renewed): return renewed
      case .failure(let failure): failed = failure
      }
      let meaning = RefreshFailure(failed)
      try await settle(old, after: meaning)
      guard failed.isPassing, number < Backoff.attempts else {
        return try fallback(old, rejecting: rejected, failed.error, meaning)
      }
      await client.dependencies.sleep(Backoff.pause(after: number, random: client.dependencies.random(1).first ?? 0))
      number += 1
    }
  }

  /// Sends the refresh token of `old` once. The store says so before, and has the new tokens before they are returned.
  private func attempt(_ old: StoredAccount) async throws(SessionError) -> Result<StoredAccount, FailedRefresh> {
    let prepared: ProviderClient.PreparedRefresh
    do throws(OIDCError) { prepared = try await client.prepareRefresh(of: old) } catch {
      return .failure(FailedRefresh(stage: .preparing, error: error))
    }
    var sent = old
    sent.refreshState = .sent(at: client.dependencies.now())
    try await write(sent, over: old)
    let renewed: StoredAccount
    do throws(FailedRefresh) { renewed = try await client.refresh(old, prepared) } catch { return .failure(error) }
    try await write(renewed, over: old)
    return .success(renewed)
  }

  /// Stores what a failed refresh says about the token.
  private func settle(_ old: StoredAccount, after failure: RefreshFailure) async throws(SessionError) {
    var account = old
    var wasUncertain = false
    if case .sent = old.refreshState { wasUncertain = true }
    switch failure {
    // The store says already that the token was sent.
    case .uncertain where !isDeleted: return
    case .notDelivered, .requestRefused, .uncertain: break
    case .postponed(let seconds):
      // What was uncertain before stays so; it is tried again no earlier than with the next call.
      if !wasUncertain {
        account.refreshState = .paused(until: client.dependencies.now().addingTimeInterval(TimeInterval(seconds)))
      }
    case .tokenRefused(let code):
      if !wasUncertain { account = account.with(refreshToken: nil) }
      account.refreshState = .refused(code, afterLostAnswer: wasUncertain)
    // The next refresh begins with the new one. To send the old one again would look like a theft.
    case .answerRefused(let refreshToken): account = account.with(refreshToken: refreshToken)
    }
    try await write(account, over: old)
  }

  /// What a caller gets after a failed refresh: the old access token while it is valid, otherwise the error.
  private func fallback(
    _ old: StoredAccount, rejecting rejected: String?, _ error: OIDCError, _ failure: RefreshFailure
  ) throws(SessionError) -> StoredAccount {
    if old.tokens.accessToken != rejected, old.expiresAt > client.dependencies.now() { return old }
    switch failure {
    case .notDelivered, .requestRefused, .answerRefused: throw .provider(error)
    case .postponed(let seconds): throw .postponed(seconds)
    case .uncertain: throw .uncertain(error)
    case .tokenRefused:
      // The store has the reason, with what was known before.
      guard let account = try usable(try stored(), rejecting: rejected) else { throw .provider(error) }
      return account
    }
  }

  /// Whether the account was deleted since the request began. One that cannot be read was not.
  private var isDeleted: Bool {
    do throws(TokenStoreError) { return try store.account(account) == nil } catch { return false }
  }

  /// Stores `tokens` in place of `old`. If that was deleted meanwhile, revokes them instead.
  ///
  /// - Throws: `.notSignedIn` for an account that was deleted; `.store`.
  private func write(_ tokens: StoredAccount, over old: StoredAccount?) async throws(SessionError) {
    guard old == nil || !isDeleted else {
      try? await client.revoke(tokens)
      throw .notSignedIn
    }
    do { try store.write(tokens, as: account) } catch { throw .store(error) }
  }
}

extension IDToken {
  /// An ID token is renewed when fewer seconds of it remain.
  fileprivate var margin: TimeInterval {
    guard let issued = claims.issuedAt, let expiry = claims.expiresAt else { return RefreshDecision.margin }
    return min(RefreshDecision.margin, expiry.timeIntervalSince(issued) / 2)
  }
}

extension StoredAccount {
  /// Whether another process has renewed the tokens since `seen` was read. A caller that waited for this takes them, even
  /// if their lifetime is short.
  fileprivate func isRenewed(since seen: StoredAccount, rejecting rejected: String?, at now: Date) -> Bool {
    tokens.accessToken != seen.tokens.accessToken && tokens.accessToken != rejected && expiresAt > now
      && issuedAt.timeIntervalSince(now) < RefreshDecision.margin
  }
}

extension OIDCError {
  /// The pause that the provider asks for, in seconds; `nil` if it asks for none.
  fileprivate var pause: Int? {
    switch self {
    case .status(429, _, let pause): pause ?? 30
    case .status(503, _, let pause): pause
    default: nil
    }
  }

  /// Whether another provider may be asked: the network failed. A certificate that is not to be trusted is an attack or a
  /// fault, and a refusal is an answer.
  public var permitsFailover: Bool {
    switch self {
    case .transport(.unreachable), .transport(.lost): true
    default: false
    }
  }
}
