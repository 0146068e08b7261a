import Foundation
import Locking
import TestSupport

@testable import OIDCClient

/// A store in memory that records what happens, excludes as a real one does, and fails when it is told to.
final class MemoryStore: TokenStore {
  struct Content: Sendable {
    var accounts: [String: StoredAccount] = [:]
    var held: Set<String> = []
    var reads = 0
    var locks = 0
    /// Each write: the access token and the state.
    var writes: [String] = []
    var fault: TokenStoreError?
    /// Called at each attempt to lock, with its number: what another process does meanwhile.
    var onLock: (@Sendable (Int, inout Content) -> Void)?
  }

  let content: Watched<Content>

  init(_ account: StoredAccount? = nil) {
    var content = Content()
    content.accounts["work"] = account
    self.content = Watched(content)
  }

  var stored: StoredAccount? { content.value.accounts["work"] }
  var writes: [String] { content.value.writes }

  func account(_ name: String) throws(TokenStoreError) -> StoredAccount? {
    try failIfTold()
    content.update { $0.reads += 1 }
    return content.value.accounts[name]
  }

  func write(_ account: StoredAccount, as name: String) throws(TokenStoreError) {
    try failIfTold()
    content.update {
      $0.accounts[name] = account
      $0.writes.append("\(account.tokens.accessToken) \(account.refreshState.word)")
    }
  }

  func delete(_ name: String) throws(TokenStoreError) {
    try failIfTold()
    content.update {
      $0.accounts[name] = nil
      $0.writes.append("deleted")
    }
  }

  func names() throws(TokenStoreError) -> [String] { content.value.accounts.keys.sorted() }

  func lock(_ name: String) throws(TokenStoreError) -> (any TokenLock)? {
    var isFree = false
    content.update {
      $0.locks += 1
      let meanwhile = $0.onLock
      meanwhile?($0.locks, &$0)
      isFree = $0.held.insert(name).inserted
    }
    return isFree ? MemoryLock(name: name, content: content) : nil
  }

  /// Plays another process.
  func hold() { content.update { $0.held.insert("work") } }
  func letGo() { content.update { $0.held.remove("work") } }

  private func failIfTold() throws(TokenStoreError) {
    if let fault = content.value.fault { throw fault }
  }

  private struct MemoryLock: TokenLock {
    let name: String
    let content: Watched<Content>
    func release() { content.update { $0.held.remove(name) } }
  }
}

extension RefreshState {
  var word: String {
    switch self {
    case .settled: "settled"
    case .sent: "sent"
    case .paused: "paused"
    case .refused(let code, let afterLostAnswer): afterLostAnswer ? "lost \(code)" : "refused \(code)"
    }
  }
}

extension StoredAccount {
  /// An account whose access token has `remaining` seconds left at `now`, of a lifetime of five minutes.
  static func sample(
    at now: Date, remaining: TimeInterval = 300, refresh: String? = "refresh-0", state: RefreshState = .settled,
    provider: IdentityProvider = .plain(), user: User? = nil, idToken: String? = nil, dpopKey: DPoPKey? = nil
  ) -> StoredAccount {
    var account = StoredAccount(
      providerID: provider.id, issuer: provider.issuer, clientID: provider.clientID,
      tokens: AuthTokens(
        accessToken: "access-0", refreshToken: refresh, tokenType: dpopKey == nil ? "Bearer" : "DPoP", expiresIn: 300,
        scope: "files", idToken: idToken),
      user: user, issuedAt: now.addingTimeInterval(remaining - 300), dpopKey: dpopKey)
    account.refreshState = state
    return account
  }
}
