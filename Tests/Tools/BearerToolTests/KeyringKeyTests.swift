import Foundation
import Locking
import OIDCClient
import TestSupport
import Testing

@testable import bearer

@Suite("The key in the keyring of the desktop")
struct KeyringKeyTests {
  private func account(_ token: String) -> StoredAccount {
    StoredAccount(
      providerID: "work", issuer: "https://id.example", clientID: "c",
      tokens: AuthTokens(
        accessToken: token, refreshToken: nil, tokenType: "Bearer", expiresIn: 3600, scope: nil, idToken: nil),
      user: nil, issuedAt: Date(timeIntervalSince1970: 1), dpopKey: nil)
  }

  @Test("The keyring is read once, and again if the tokens are under another key")
  func once() async throws {
    try await Places.withTemporaryFolder { folder in
      let keyring = LockedValue<[UInt8]?>(TokenKey().bytes)
      let reads = LockedValue(0)
      func store() -> TokenFolder {
        TokenFolder(
          path: folder,
          key: KeyringKey(
            folder: folder,
            secret: { _ in
              reads.withLock { $0 += 1 }
              return keyring.withLock { $0 }
            }))
      }
      let running = store()
      try running.write(account("first"), as: "work")
      for _ in 0..<5 { #expect(try running.account("work")?.tokens.accessToken == "first") }
      #expect(reads.withLock { $0 } == 1)
      // Another process deletes the tokens and the key, and signs in with a new one.
      try running.delete("work")
      keyring.withLock { $0 = TokenKey().bytes }
      try store().write(account("second"), as: "work")
      #expect(try running.account("work")?.tokens.accessToken == "second")
      // A key that is neither is an error, and not asked for without an end.
      keyring.withLock { $0 = TokenKey().bytes }
      let before = reads.withLock { $0 }
      #expect(throws: TokenStoreError.self) { try store().account("work") }
      #expect(reads.withLock { $0 } == before + 2)
      #expect(try running.account("work")?.tokens.accessToken == "second")
    }
  }

  @Test("The key is looked for under the folder from the root on, and then under the name of earlier versions")
  func names() throws {
    let here = FileManager.default.currentDirectoryPath
    for (written, folder) in [("s", here + "/s"), ("./s/", here + "/s"), ("/a/../b/s", "/b/s")] {
      #expect(try StorePlace(folder: written, key: .file, environment: [:]).folderFromRoot == folder)
    }
    let key = TokenKey()
    for place in ["/a/s", "s"] {
      let asked = LockedValue<[String]>([])
      let keyring = KeyringKey(
        folder: "/a/s", earlierFolder: "s",
        secret: { attributes in
          let store = attributes["store"] ?? ""
          asked.withLock { $0.append(store) }
          return store == place ? key.bytes : nil
        })
      #expect(try keyring.key() == key)
      #expect(asked.withLock { $0 } == (place == "s" ? ["/a/s", "s"] : ["/a/s"]))
    }
  }
}
