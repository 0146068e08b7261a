import Foundation
import Locking
import Testing

@testable import OIDCClient

/// A keychain in memory, which refuses with a status when it is told to.
final class FakeKeychain: KeychainItems {
  struct Content: Sendable {
    var items: [String: Data] = [:]
    var status: OSStatus?
    /// Runs once before an item is added: another task that is faster.
    var beforeAdding: Data?
  }

  let content = LockedValue(Content())

  private func with(_ body: (inout Content) -> OSStatus) -> OSStatus {
    content.withLock { content in content.status ?? body(&content) }
  }

  func add(_ data: Data, account: String) -> OSStatus {
    with { content in
      if let other = content.beforeAdding { content.items[account] = other }
      content.beforeAdding = nil
      guard content.items[account] == nil else { return -25_299 }
      content.items[account] = data
      return 0
    }
  }

  func update(_ data: Data, account: String) -> OSStatus {
    with { content in
      guard content.items[account] != nil else { return -25_300 }
      content.items[account] = data
      return 0
    }
  }

  func find(_ account: String) -> (status: OSStatus, data: Data?) {
    var found: Data?
    let status = with { content in
      found = content.items[account]
      return found == nil ? -25_300 : 0
    }
    return (status, found)
  }

  func delete(_ account: String) -> OSStatus {
    with { $0.items.removeValue(forKey: account) == nil ? -25_300 : 0 }
  }

  func accounts() -> (status: OSStatus, accounts: [String]) {
    var names: [String] = []
    let status = with { content in
      names = Array(content.items.keys)
      return names.isEmpty ? -25_300 : 0
    }
    return (status, names)
  }
}

/// Answers as it is told to, and counts.
private final class FakeBiometry: BiometricCheck {
  let isOwner: Bool
  let count = LockedValue(0)

  init(isOwner: Bool) { self.isOwner = isOwner }

  func check(reason: String) throws(TokenStoreError) {
    count.withLock { $0 += 1 }
    if !isOwner { throw .notRecognised }
  }
}

@Suite("A keychain as a store")
struct KeychainTests {
  private let now = Date(timeIntervalSince1970: 1_800_000_000)
  private let keychain = FakeKeychain()

  private func refuse(_ status: OSStatus?) { keychain.content.withLock { $0.status = status } }

  private func tokens(_ number: Int = 1) -> AuthTokens {
    AuthTokens(
      accessToken: "access-\(number)", refreshToken: "refresh-\(number)", tokenType: "Bearer", expiresIn: 300,
      scope: "files", idToken: "id")
  }

  private func manager(_ biometry: (any BiometricCheck)? = nil) -> KeychainManager {
    KeychainManager(
      provider: .plain(), store: TokenKeychain(items: keychain), biometry: biometry, now: { [now] in now })
  }

  private func status(_ body: () throws -> Void) -> OSStatus? {
    do {
      try body()
      return nil
    } catch AuthenticationError.keychainError(let status) {
      return status
    } catch {
      Issue.record("\(error)")
      return nil
    }
  }

  @Test("C-018 A missing item is no error")
  func missing() throws {
    #expect(try manager().retrieveTokens(for: "ada") == nil)
    try manager().deleteTokens(for: "ada")
    try manager().clearAllTokens()
    refuse(-25_300)
    #expect(try manager().retrieveTokens(for: "ada") == nil)
    #expect(status { try manager().store(tokens: tokens(), for: "ada") } == -25_300)
  }

  @Test("C-018 An item that another task has just added is replaced")
  func duplicate() throws {
    keychain.content.withLock { $0.beforeAdding = Data("other".utf8) }
    try manager().store(tokens: tokens(), for: "ada")
    #expect(try manager().retrieveTokens(for: "ada") == tokens())
    refuse(-25_299)
    #expect(status { try manager().store(tokens: tokens(), for: "ada") } == -25_299)
  }

  @Test("C-018 Every other status is an error with its number", arguments: [-25_293, -34_018, -25_308] as [OSStatus])
  func refused(number: OSStatus) throws {
    try manager().store(tokens: tokens(), for: "ada")
    refuse(number)
    #expect(status { try manager().store(tokens: tokens(2), for: "ada") } == number)
    #expect(status { _ = try manager().retrieveTokens(for: "ada") } == number)
    #expect(status { try manager().deleteTokens(for: "ada") } == number)
    #expect(status { try manager().clearAllTokens() } == number)
    refuse(nil)
    #expect(try manager().retrieveTokens(for: "ada") == tokens())
  }

  @Test("C-018 An item that is no account is an error", arguments: ["", "{}", "[[[[", "null"])
  func undecodable(text: String) throws {
    keychain.content.withLock { $0.items["ada"] = Data(text.utf8) }
    #expect(status { _ = try manager().retrieveTokens(for: "ada") } == -26_275)
    try manager().clearAllTokens()
    #expect(try manager().retrieveTokens(for: "ada") == nil)
  }

  @Test("C-051 Tokens are stored, found, replaced and deleted by user, whatever the user is called")
  func users() throws {
    let names = ["ada", "Ada", "", "ädä@例え.jp", "../../etc", "a\u{0}b", "🧑‍🚀", String(repeating: "x", count: 5000)]
    for (number, name) in names.enumerated() { try manager().store(tokens: tokens(number), for: name) }
    for (number, name) in names.enumerated() {
      #expect(try manager().retrieveTokens(for: name) == tokens(number))
    }
    try manager().store(tokens: tokens(99), for: "ada")
    #expect(try manager().retrieveTokens(for: "ada") == tokens(99))
    try manager().deleteTokens(for: "ada")
    #expect(try manager().retrieveTokens(for: "ada") == nil)
    #expect(try manager().retrieveTokens(for: "Ada") == tokens(1))
    try manager().clearAllTokens()
    for name in names { #expect(try manager().retrieveTokens(for: name) == nil) }
  }

  @Test("C-019 Tokens are returned only after the device has recognised its owner")
  func biometry() throws {
    try manager().store(tokens: tokens(), for: "ada")
    let (owner, stranger) = (FakeBiometry(isOwner: true), FakeBiometry(isOwner: false))
    #expect(try manager(owner).retrieveTokens(for: "ada") == tokens())
    #expect(owner.count.withLock { $0 } == 1)
    var found: AuthenticationError?
    do { _ = try manager(stranger).retrieveTokens(for: "ada") } catch { found = error as? AuthenticationError }
    guard case .biometricAuthenticationFailed = found else {
      Issue.record("\(String(describing: found))")
      return
    }
    // Without tokens there is nothing to protect.
    #expect(try manager(stranger).retrieveTokens(for: "eve") == nil)
    #expect(stranger.count.withLock { $0 } == 1)
  }

  @Test("C-044 Without biometry everything works")
  func noBiometry() throws {
    try manager(nil).store(tokens: tokens(), for: "ada")
    #expect(try manager(nil).retrieveTokens(for: "ada") == tokens())
  }

  @Test("C-051 The tokens of a lifetime count from when they were stored")
  func lifetime() throws {
    try manager().store(tokens: tokens(), for: "ada")
    let stored = try #require(try TokenKeychain(items: keychain).account("ada"))
    #expect(stored.issuedAt == now && stored.expiresAt == now.addingTimeInterval(300))
  }

  @Test("A lock excludes the other tasks of the process until it is released or forgotten")
  func locks() throws {
    let store = TokenKeychain(items: keychain)
    let copy = store
    let lock = try #require(try store.lock("ada"))
    #expect(try copy.lock("ada") == nil)
    #expect(try copy.lock("eve") != nil)
    lock.release()
    lock.release()
    do { #expect(try copy.lock("ada") != nil) }
    let next = try store.lock("ada")
    #expect(next != nil)
    // A second release of an older lock frees nothing.
    lock.release()
    #expect(try store.lock("ada") == nil)
    next?.release()
  }
}
