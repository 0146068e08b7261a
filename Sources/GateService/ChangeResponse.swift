public import AppAttest
public import AttestGate
public import Logging
internal import Transport

/// What a gate does when others change the store: it forgets what it remembers, takes over new keys of nonces and
/// identities, and closes the sessions of keys that were revoked or removed.
public struct ChangeResponse: Sendable {
  private let registry: any KeyRegistry
  private let challenges: Challenges
  private let identityKeys: IdentityKeys
  private let sessions: LiveSessions
  private let closesSessions: Bool
  private let forget: @Sendable (KeyID) -> Void
  private let logger: Logger

  /// - Parameters:
  ///   - closesSessions: whether the sessions of a revoked key are closed.
  ///   - forget: forgets what rules remember of a key.
  public init(
    registry: any KeyRegistry, challenges: Challenges, identityKeys: IdentityKeys, sessions: LiveSessions,
    closesSessions: Bool = true, forget: @escaping @Sendable (KeyID) -> Void = { _ in }, logger: Logger
  ) {
    self.registry = registry
    self.challenges = challenges
    self.identityKeys = identityKeys
    self.sessions = sessions
    self.closesSessions = closesSessions
    self.forget = forget
    self.logger = logger
  }

  /// Reads the changes of `feed` until the task is cancelled. A revocation is answered within `interval`, and at once where
  /// the store gives notice.
  public func run(reading feed: any ChangeFeed, every interval: Duration) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await recheckSuspects() }
      await StoreWatch(feed, every: interval).run { change throws(StoreError) in try await respond(to: change) }
      group.cancelAll()
    }
  }

  func respond(to change: StoreChange) async throws(StoreError) {
    switch change {
    case .key(let keyID):
      forget(keyID)
      if sessions.noteChange(of: keyID) { try await check(keyID) }
    case .sharedKeys: try await refreshKeys()
    case .everything:
      try await refreshKeys()
      for keyID in sessions.noteChangeOfEverything() { try await check(keyID) }
    }
  }

  /// Keys that nobody has asked for yet are fetched when somebody does.
  private func refreshKeys() async throws(StoreError) {
    if challenges.isReady { try await challenges.refresh() }
    if identityKeys.isReady { try await identityKeys.refresh() }
  }

  /// Keys that changed while a session of theirs was let in. Asked until the store answers: nobody asks again.
  private func recheckSuspects() async {
    for await keyID in sessions.recheck {
      while !Task.isCancelled {
        do throws(StoreError) {
          try await check(keyID)
          break
        } catch {
          try? await Task.sleep(for: .seconds(1))
        }
      }
    }
  }

  private func check(_ keyID: KeyID) async throws(StoreError) {
    let record = try await registry.record(of: keyID)
    guard closesSessions, record == nil || record?.revokedAt != nil else { return }
    let count = sessions.close(
      key: keyID, .revoked, reason: record == nil ? "the key was removed" : "the key was revoked")
    guard count > 0 else { return }
    logger.notice(
      "closing the sessions of a key that was revoked",
      metadata: ["key": "\(KeyHash(of: keyID).short)", "sessions": .stringConvertible(count)])
  }
}
