public import AppAttest
public import AttestGate
public import Logging
internal import Observability
internal import Transport

/// Handles changes that other processes make to the store: evicts cached keys, loads new challenge keys and identity
/// signing keys, and closes the sessions of keys that were revoked or removed.
public struct ChangeResponse: Sendable {
  private let registry: any KeyRegistry
  private let challenges: Challenges
  private let identityKeys: IdentityKeys
  private let sessions: LiveSessions
  let closesSessions: Bool
  private let forget: @Sendable (KeyID?) -> Void
  private let logger: Logger

  /// - Parameters:
  ///   - closesSessions: Whether the sessions of a revoked or removed key are closed.
  ///   - forget: Evicts a key, or every key (`nil`), from the caches of the admission rules.
  public init(
    registry: any KeyRegistry, challenges: Challenges, identityKeys: IdentityKeys, sessions: LiveSessions,
    closesSessions: Bool = true, forget: @escaping @Sendable (KeyID?) -> Void = { _ in }, logger: Logger
  ) {
    self.registry = registry
    self.challenges = challenges
    self.identityKeys = identityKeys
    self.sessions = sessions
    self.closesSessions = closesSessions
    self.forget = forget
    self.logger = logger
  }

  /// The maximum number of concurrent key lookups in the store.
  private static let breadth = 256

  func respond(to change: StoreChange) async throws(StoreError) {
    switch change {
    case .key(let keyID):
      forget(keyID)
      if sessions.noteChange(of: keyID) { try await check(keyID) }
    case .sharedKeys: try await refreshKeys()
    case .everything:
      forget(nil)
      // Revocations first.
      try await check(sessions.noteChangeOfEverything())
      try await refreshKeys()
    }
  }

  /// Refreshes only keys that are already loaded. Others are loaded on first use.
  private func refreshKeys() async throws(StoreError) {
    if challenges.isReady {
      try await reportingDamage { () throws(StoreError) in try await challenges.refresh() }
    }
    if identityKeys.isReady {
      try await reportingDamage { () throws(StoreError) in try await identityKeys.refresh() }
    }
  }

  /// A retry of what is damaged in the store would fail in the same way and delay all later changes.
  private func reportingDamage(_ refresh: () async throws(StoreError) -> Void) async throws(StoreError) {
    do throws(StoreError) {
      try await refresh()
    } catch .corrupt(let reason) {
      logger.error("shared keys damaged: the loaded ones stay until a restart", metadata: ["detail": "\(reason)"])
    } catch {
      throw error
    }
  }

  /// Checks keys concurrently, since a revocation that arrives meanwhile waits for all of them.
  private func check(_ keys: [KeyID]) async throws(StoreError) {
    let failure = await withTaskGroup(of: StoreError?.self) { group in
      var (rest, failure) = (keys[...], StoreError?.none)
      func next() {
        guard failure == nil, let keyID = rest.popFirst() else { return }
        group.addTask {
          do throws(StoreError) {
            try await check(keyID)
            return nil
          } catch {
            return error
          }
        }
      }
      for _ in 0..<Self.breadth { next() }
      for await outcome in group {
        failure = failure ?? outcome
        next()
      }
      return failure
    }
    if let failure { throw failure }
  }

  /// Looks up the state of `keyID`. Closes its sessions if the key was revoked or removed, or if its record cannot be
  /// read.
  func check(_ keyID: KeyID) async throws(StoreError) {
    let record: KeyRecord?
    do throws(StoreError) {
      record = try await registry.record(of: keyID)
    } catch .corrupt(let reason) {
      // A retry would fail in the same way and delay all later changes.
      return closeUnreadable(keyID, because: reason)
    } catch {
      throw error
    }
    guard closesSessions, record == nil || record?.revokedAt != nil else { return }
    let count = sessions.close(
      key: keyID, .revoked, reason: record == nil ? "the key was removed" : "the key was revoked")
    guard count > 0 else { return }
    logger.notice(
      "sessions of revoked key closed",
      metadata: ["key": "\(KeyHash(of: keyID).short)", "sessions": .number(count)])
  }

  private func closeUnreadable(_ keyID: KeyID, because reason: String) {
    let count = closesSessions ? sessions.close(key: keyID, .internalError, reason: "the key cannot be looked up") : 0
    logger.error(
      "key record damaged",
      metadata: [
        "key": "\(KeyHash(of: keyID).short)", "sessions": .number(count), "detail": "\(reason)",
      ])
  }
}
