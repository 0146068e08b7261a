import Foundation
import Locking
import OIDCClient
import TestSupport
import Testing

@testable import bearer

@Suite("The token in the files of a running command")
struct TokenKeeperTests {
  private static let issuer = "https://id.example"

  /// An account whose token is valid for an hour.
  private func account(_ token: String, key: DPoPKey? = nil) -> StoredAccount {
    StoredAccount(
      providerID: "work", issuer: Self.issuer, clientID: "c",
      tokens: AuthTokens(
        accessToken: token, refreshToken: nil, tokenType: key == nil ? "Bearer" : "DPoP", expiresIn: 3600, scope: nil,
        idToken: nil),
      user: nil, issuedAt: Date(), dpopKey: key)
  }

  @Test("A folder in memory is found next to file systems whose places are no UTF-8", arguments: ["tmpfs", "ext4"])
  func mounts(kind: String) {
    let mounts = Array("none / \(kind) rw 0 0\n/dev/sdb1 /media/M".utf8) + [0xFC] + Array("ller vfat rw 0 0\n".utf8)
    #expect(TokenFiles.isInMemory("/", mounts) == (kind == "tmpfs"))
  }

  @Test("A token that cannot be shown is told once, and the one in the files goes when it expires")
  func unshown() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = TokenFolder(path: folder + "/store", key: TokenKeyFile(path: folder + "/key"))
      let provider = IdentityProvider(
        id: "work", name: "work", issuer: try #require(URL(string: Self.issuer)), clientID: "c")
      let client = ProviderClient(
        provider: provider,
        dependencies: Network.dependencies(
          provider, attester: nil, isDebugging: false, exchangeTime: Network.exchangeTime))
      let files = try TokenFiles(certificate: nil, environment: ["XDG_RUNTIME_DIR": folder])
      defer { files.remove() }
      let clock = LockedValue(Date())
      let warnings = LockedValue<[String]>([])
      let session = IssuerSession(
        account: Account(provider: provider, name: "work"), client: client,
        session: AccountSession(account: "work", client: client, store: store))
      let keeper = TokenKeeper(
        session: session, store: store, files: files, now: { clock.withLock { $0 } },
        warn: { warning in warnings.withLock { $0.append(warning) } })
      let first = account("first")
      try files.write("first")
      var progress = TokenKeeper.Progress(first)
      func shown() -> String? { try? String(contentsOfFile: files.token, encoding: .utf8) }

      // Another process signs in, and gets a token that is of no use alone.
      try store.write(account("bound", key: DPoPKey()), as: "work")
      for _ in 0..<3 { await keeper.renew(&progress) }
      #expect(warnings.withLock { $0.count } == 1 && warnings.withLock { $0[0] }.hasPrefix("token_bound: work"))
      #expect(shown() == "first\n")
      clock.withLock { $0 = first.expiresAt }
      await keeper.renew(&progress)
      #expect(shown() == nil && warnings.withLock { $0.count } == 1)

      // The next one can be shown; what cannot be shown after it is told again.
      try store.write(account("second"), as: "work")
      await keeper.renew(&progress)
      #expect(shown() == "second\n" && warnings.withLock { $0.count } == 1)
      try store.write(account("bound again", key: DPoPKey()), as: "work")
      for _ in 0..<2 { await keeper.renew(&progress) }
      #expect(warnings.withLock { $0.count } == 2)
    }
  }
}
