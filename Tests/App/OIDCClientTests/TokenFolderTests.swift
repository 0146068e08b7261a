import Foundation
import Glibc
import Locking
import TestSupport
import Testing

@testable import OIDCClient

@Suite("A folder of tokens", .timeLimit(.minutes(2)))
struct TokenFolderTests {
  private let now = Date(timeIntervalSince1970: 1_800_000_000)

  private func account(_ number: Int = 0) -> StoredAccount {
    StoredAccount(
      providerID: "work", issuer: "https://login.example.com", clientID: "app",
      tokens: AuthTokens(
        accessToken: "s3cret-access-\(number)", refreshToken: "s3cret-refresh", tokenType: "DPoP", expiresIn: 300,
        scope: "openid", idToken: "s3cret-id"),
      user: User(id: "1", username: "s3cret-ada", email: nil, displayName: nil), issuedAt: now, dpopKey: DPoPKey())
  }

  private func store(_ folder: String) -> TokenFolder {
    TokenFolder(path: folder + "/tokens", key: TokenKeyFile(path: folder + "/key/token.key"))
  }

  private func mode(_ path: String) throws -> Int {
    try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  private func file(_ folder: String) throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder + "/tokens").filter {
      $0.hasSuffix(".tokens")
    }
    return folder + "/tokens/" + (try #require(names.first))
  }

  private func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: url(file: path))) }
  private func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: url(file: path)) }
  private func url(file path: String) -> URL { URL(fileURLWithPath: path) }

  private func refusal(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "accepted"
    } catch let error as TokenStoreError {
      return switch error {
      case .file: "file"
      case .damaged: "damaged"
      case .unknownVersion: "version"
      case .keyMissing: "key missing"
      case .otherKey: "other key"
      case .keyExposed(_, let mode): "exposed \(mode)"
      case .keychain, .notRecognised: "keychain"
      }
    } catch {
      return "\(error)"
    }
  }

  @Test("C-014 Accounts survive a new store, whatever they are called")
  func restart() async throws {
    try await Places.withTemporaryFolder { folder in
      let names = ["work", "Work", "", "../../x", "a/b", "ä 例え 🧑‍🚀", "a\nb", String(repeating: "x", count: 4000)]
      for (number, name) in names.enumerated() {
        var account = account(number)
        account.refreshState = .sent(at: now)
        try store(folder).write(account, as: name)
        #expect(try store(folder).account(name) == account, "\(number)")
      }
      #expect(try store(folder).names() == names.sorted())
      #expect(try store(folder).account("missing") == nil)
      try store(folder).delete("work")
      try store(folder).delete("work")
      #expect(try store(folder).account("work") == nil)
      #expect(try store(folder).names().count == names.count - 1)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == ["key", "tokens"])
    }
  }

  @Test("C-017 Files are for their owner alone, and no file contains a token")
  func modes() async throws {
    try await Places.withTemporaryFolder { folder in
      try FileManager.default.createDirectory(
        atPath: folder + "/tokens", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
      try store(folder).write(account(), as: "work")
      _ = try store(folder).lock("work")
      #expect(try mode(folder + "/tokens") == 0o700)
      #expect(try mode(folder + "/key") == 0o700)
      let files = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.contains(".") }
      #expect(files.count == 3)
      for name in files {
        #expect(try mode(folder + "/" + name) == 0o600, "\(name)")
        let content = try Data(contentsOf: url(file: folder + "/" + name))
        for part in ["s3cret", "work", "login.example.com"] {
          #expect(content.range(of: Data(part.utf8)) == nil && !name.contains(part))
        }
      }
    }
  }

  @Test("C-057 The same account is never encrypted twice to the same bytes")
  func nonces() async throws {
    try await Places.withTemporaryFolder { folder in
      let account = account()
      var seen: Set<[UInt8]> = []
      for _ in 0..<20 {
        try store(folder).write(account, as: "work")
        seen.insert(try bytes(file(folder)))
      }
      #expect(seen.count == 20)
    }
  }

  @Test("C-057 A file in which any byte, or any bit of its first lines, was changed is refused")
  func flips() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      let place = try file(folder)
      let original = try bytes(place)
      let header = "sallyport tokens 1\n0123456789abcdef\n".utf8.count
      let bits = Array(0..<header * 8) + (header..<original.count).map { $0 * 8 + $0 % 8 }
      for bit in Sanitizer.isOn ? Array(bits.prefix(100)) : bits {
        var changed = original
        changed[bit / 8] ^= 1 << UInt8(bit % 8)
        try write(changed, to: place)
        #expect(throws: TokenStoreError.self, "bit \(bit)") { try store(folder).account("work") }
      }
      try write(original, to: place)
      #expect(try store(folder).account("work") != nil)
    }
  }

  @Test("A file that was cut at any length, or continued, is refused")
  func truncated() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      let place = try file(folder)
      let original = try bytes(place)
      for length in 0..<original.count {
        try write(Array(original[..<length]), to: place)
        #expect(throws: TokenStoreError.self, "\(length)") { try store(folder).account("work") }
      }
      for more in [[0], Array("\n".utf8), original, [UInt8](repeating: 0, count: 1 << 21)] {
        try write(original + more, to: place)
        #expect(refusal { _ = try store(folder).account("work") } == "damaged")
      }
    }
  }

  @Test("A file under another account's name, a later version and another key are refused")
  func misplaced() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      let place = try file(folder)
      let original = try bytes(place)
      try store(folder).write(account(1), as: "home")
      let other = try #require(
        try FileManager.default.contentsOfDirectory(atPath: folder + "/tokens").map { folder + "/tokens/" + $0 }
          .first { $0.hasSuffix(".tokens") && $0 != place })
      try write(original, to: other)
      #expect(refusal { _ = try store(folder).account("home") } == "damaged")
      let text = Array("sallyport tokens 2\n".utf8) + original.dropFirst("sallyport tokens 1\n".utf8.count)
      try write(text, to: place)
      #expect(refusal { _ = try store(folder).account("work") } == "version")
      try write(original, to: place)
      let second = TokenFolder(path: folder + "/tokens", key: TokenKeyFile(path: folder + "/second.key"))
      try write(TokenKey().bytes, to: folder + "/second.key")
      #expect(chmod(folder + "/second.key", 0o600) == 0)
      #expect(refusal { _ = try second.account("work") } == "other key")
    }
  }

  @Test("A key that is missing while there are tokens is an error, and no second key is made")
  func missingKey() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      try FileManager.default.removeItem(atPath: folder + "/key/token.key")
      #expect(refusal { _ = try store(folder).account("work") } == "key missing")
      #expect(refusal { try store(folder).write(account(), as: "home") } == "key missing")
      #expect(!FileManager.default.fileExists(atPath: folder + "/key/token.key"))
      // What cannot be read can be deleted, and then everything begins again.
      let manager = KeychainManager(provider: .plain(), store: store(folder))
      try manager.clearAllTokens()
      try store(folder).write(account(), as: "home")
      #expect(try store(folder).names() == ["home"])
    }
  }

  @Test("One damaged file does not prevent that all are deleted")
  func clear() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).clear()
      for name in ["a", "b", "c"] { try store(folder).write(account(), as: name) }
      try write([1, 2, 3], to: file(folder))
      #expect(throws: TokenStoreError.self) { try store(folder).names() }
      let listing = try store(folder).listing()
      #expect(listing.names.count == 2 && listing.unreadable.count == 1)
      #expect(listing.unreadable.first.map { $0.error == .damaged($0.place) } == true)
      try store(folder).clear()
      #expect(try store(folder).names() == [])
    }
  }

  @Test("A folder that cannot be listed is an error with the system's reason, and a missing one is empty")
  func unlisted() async throws {
    try await Places.withTemporaryFolder { folder in
      #expect(try store(folder).names() == [])
      try store(folder).clear()
      try write([], to: folder + "/tokens")
      let fault = TokenStoreError.file(folder + "/tokens", reason: "Not a directory")
      #expect(throws: fault) { try store(folder).names() }
      #expect(throws: fault) { try store(folder).clear() }
      let below = TokenFolder(path: folder + "/tokens/below", key: TokenKeyFile(path: folder + "/key/token.key"))
      #expect(throws: TokenStoreError.file(below.path, reason: "Not a directory")) {
        try below.write(account(), as: "work")
      }
      #expect(!FileManager.default.fileExists(atPath: folder + "/key"))
    }
  }

  @Test("A key that others can read is refused", arguments: [0o640, 0o604, 0o610, 0o666, 0o700, 0o400])
  func exposed(mode: Int) async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      #expect(chmod(folder + "/key/token.key", mode_t(mode)) == 0)
      let expected = mode & 0o077 == 0 ? "accepted" : "exposed \(String(mode, radix: 8))"
      #expect(refusal { _ = try store(folder).account("work") } == expected)
      #expect(refusal { try store(folder).write(account(), as: "work") } == expected)
    }
  }

  @Test("A key of another length is refused, and not replaced", arguments: [0, 1, 31, 33, 64, 2000])
  func shortKey(length: Int) async throws {
    try await Places.withTemporaryFolder { folder in
      try FileManager.default.createDirectory(atPath: folder + "/key", withIntermediateDirectories: true)
      try write([UInt8](repeating: 7, count: length), to: folder + "/key/token.key")
      #expect(chmod(folder + "/key/token.key", 0o600) == 0)
      #expect(refusal { try store(folder).write(account(), as: "work") } == "damaged")
      #expect(try bytes(folder + "/key/token.key").count == length)
    }
  }

  @Test("A symbolic link is followed neither to tokens nor to a key nor to a lock")
  func links() async throws {
    try await Places.withTemporaryFolder { folder in
      try store(folder).write(account(), as: "work")
      let place = try file(folder)
      let moved = folder + "/elsewhere"
      let manager = FileManager.default
      try manager.moveItem(atPath: place, toPath: moved)
      try manager.createSymbolicLink(atPath: place, withDestinationPath: moved)
      #expect(refusal { _ = try store(folder).account("work") } == "file")
      // A write replaces the link, and not what it leads to.
      let before = try bytes(moved)
      try store(folder).write(account(1), as: "work")
      #expect(try bytes(moved) == before)
      #expect(try store(folder).account("work")?.tokens.accessToken == "s3cret-access-1")
      let lock = String(place.dropLast(".tokens".count)) + ".lock"
      try manager.createSymbolicLink(atPath: lock, withDestinationPath: moved)
      #expect(refusal { _ = try store(folder).lock("work") } == "file")
      try manager.moveItem(atPath: folder + "/key/token.key", toPath: folder + "/key/real")
      try manager.createSymbolicLink(atPath: folder + "/key/token.key", withDestinationPath: folder + "/key/real")
      #expect(refusal { _ = try store(folder).account("work") } == "file")
    }
  }

  @Test("Many that make the key at once get the same one")
  func oneKey() async throws {
    for _ in 0..<Sanitizer.reduce(20) {
      try await Places.withTemporaryFolder { folder in
        let path = folder + "/key/token.key"
        let makers = (0..<8).map { _ in Aside { try TokenKeyFile(path: path).make() } }
        var keys: Set<TokenKey> = []
        for maker in makers { keys.insert(try await maker.value) }
        #expect(keys.count == 1)
        #expect(try TokenKeyFile(path: path).key() == keys.first)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/key") == ["token.key"])
      }
    }
  }

  /// A place of keys without a lock, such as a keyring: the last key that is put there stays.
  private struct OpenPlace: TokenKeySource {
    struct Content: Sendable {
      var key: TokenKey?
      var looks = 0
      var made = 0
      /// What another process puts there after the first look.
      var theirs: TokenKey?
    }

    let place = "the place of a test"
    let content: LockedValue<Content>

    init(theirs: TokenKey? = nil) { content = LockedValue(Content(theirs: theirs)) }

    func key() throws(TokenStoreError) -> TokenKey? {
      content.withLock { content -> TokenKey? in
        defer { content.key = content.key ?? content.theirs }
        content.looks += 1
        return content.key
      }
    }

    func make() throws(TokenStoreError) -> TokenKey {
      let key = TokenKey()
      content.withLock { content in
        content.key = key
        content.made += 1
      }
      return key
    }
  }

  @Test("A store makes no key where another process has made one since it looked")
  func keyOfAnother() async throws {
    try await Places.withTemporaryFolder { folder in
      let place = OpenPlace(theirs: TokenKey())
      let store = TokenFolder(path: folder + "/tokens", key: place)
      try store.write(account(), as: "work")
      #expect(place.content.withLock { $0.made == 0 && $0.looks == 2 })
      #expect(try store.account("work") != nil)
    }
  }

  @Test("Many that write their first account at once make one key, also in a place without a lock")
  func oneKeyAnywhere() async throws {
    for _ in 0..<Sanitizer.reduce(20) {
      try await Places.withTemporaryFolder { folder in
        let place = OpenPlace()
        let store = TokenFolder(path: folder + "/tokens", key: place)
        let writers = (0..<8).map { number in Aside { try store.write(account(number), as: "\(number)") } }
        for writer in writers { try await writer.value }
        #expect(place.content.withLock { $0.made } == 1)
        #expect(try store.names().count == 8)
      }
    }
  }

  @Test("Many that write at once leave whole files")
  func manyWriters() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = store(folder)
      let writers = (0..<8).map { number in
        Aside { for _ in 0..<10 { try store.write(account(number), as: "work") } }
      }
      for writer in writers { try await writer.value }
      #expect(try store.account("work") != nil)
      #expect(try store.names() == ["work"])
    }
  }

  @Test("A lock excludes others until it is released, or its owner is gone")
  func locks() async throws {
    try await Places.withTemporaryFolder { folder in
      let lock = try #require(try store(folder).lock("work"))
      #expect(try store(folder).lock("work") == nil)
      #expect(try store(folder).lock("home") != nil)
      lock.release()
      lock.release()
      do {
        let owned = try store(folder).lock("work")
        #expect(owned != nil)
      }
      #expect(try store(folder).lock("work") != nil)
      // Deleting an account does not free its lock for two owners.
      let held = try store(folder).lock("work")
      try store(folder).delete("work")
      #expect(try store(folder).lock("work") == nil)
      held?.release()
    }
  }

  @Test("C-031 An account has all that was stored, with the absolute times")
  func fields() async throws {
    try await Places.withTemporaryFolder { folder in
      let states: [RefreshState] = [
        .settled, .sent(at: now), .paused(until: now), .refused("x", afterLostAnswer: true),
      ]
      for state in states {
        var account = account()
        account.refreshState = state
        try store(folder).write(account, as: "work")
        let found = try #require(try store(folder).account("work"))
        #expect(found == account && found.expiresAt == now.addingTimeInterval(300) && found.issuedAt == now)
        #expect(found.dpopKey?.bytes == account.dpopKey?.bytes)
      }
    }
  }
}
