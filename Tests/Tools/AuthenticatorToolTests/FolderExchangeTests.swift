import AuthenticatorVault
import Commands
import Foundation
import TestSupport
import Testing

@testable import authenticator

@Suite("sync and what other processes write in the meantime", .timeLimit(.minutes(3)))
struct FolderExchangeTests {
  private let theirs = VaultKey()
  private let own = VaultKey()

  private func entry(_ issuer: String, kind: VaultEntry.Kind = .totp(period: 30)) -> VaultEntry {
    VaultEntry(issuer: issuer, account: "", secret: Array("the secret of \(issuer)".utf8), kind: kind, at: 1)
  }

  private func opened(_ key: VaultKey, _ entries: VaultEntry...) throws -> OpenVault {
    var vault = Vault()
    for entry in entries { vault.add(entry, at: 1) }
    let slot = try PassphraseSlot(key, passphrase: "p", cost: 1024)
    return OpenVault(vault: vault, key: key, slots: .init([slot], changedAt: 1))
  }

  /// A folder with the vault `theirs`, and the place of a vault of this machine.
  private func withFolders(_ body: (FolderExchange, OpenVault) throws -> Void) async throws {
    try await Places.withTemporaryFolder { place in
      try FileManager.default.createDirectory(atPath: place + "/shared", withIntermediateDirectories: false)
      let exchange = FolderExchange(
        folder: place + "/shared", local: try VaultFolder(path: place + "/vault", environment: [:]))
      let shared = try opened(theirs, entry("Shared"))
      try shared.file.bytes.write(to: URL(fileURLWithPath: exchange.place))
      try body(exchange, shared)
    }
  }

  private func issuers(_ exchange: FolderExchange, _ key: VaultKey) throws -> [String] {
    try #require(try exchange.local.read()).vault(key: key).entries.map(\.issuer)
  }

  @Test func `a join keeps the entries and the counters that came while a passphrase was typed`() async throws {
    try await withFolders { exchange, shared in
      let counter = entry("Counter", kind: .hotp)
      var mine = try opened(own, entry("Mine"), counter)
      try exchange.local.locked { try exchange.local.write(mine.file) }
      let known = OpenVault(vault: mine.vault, key: theirs, slots: shared.slots)
      mine.vault.add(entry("New"), at: 2)
      _ = try mine.vault.takeCounter(of: counter.id)
      try exchange.local.locked { try exchange.local.write(mine.file) }
      _ = try exchange.local.locked { try exchange.run(known, replacing: own) }
      #expect(try issuers(exchange, theirs) == ["Counter", "Mine", "New", "Shared"])
      let both = try #require(try exchange.shared()).vault(key: theirs)
      #expect(both.entries.count == 4 && both[counter.id]?.counter == 1)
    }
  }

  @Test func `a vault of a third key is not overwritten`() async throws {
    try await withFolders { exchange, shared in
      let third = VaultKey()
      let made = try opened(third, entry("Made")).file
      let before = try Data(contentsOf: URL(fileURLWithPath: exchange.place))
      try exchange.local.locked { try exchange.local.write(made) }
      for own in [nil, own] {
        let known = OpenVault(vault: shared.vault, key: theirs, slots: shared.slots)
        #expect {
          try exchange.local.locked { try exchange.run(known, replacing: own) }
        } throws: { error in
          (error as? Failure)?.status == .retryLater && "\(error)".contains("has made a vault in the meantime")
        }
        #expect(try exchange.local.read() == made)
        #expect(try Data(contentsOf: URL(fileURLWithPath: exchange.place)) == before)
      }
    }
  }

  @Test func `a first exchange makes the vault, and one that is gone since then is not made again`() async throws {
    try await withFolders { exchange, shared in
      _ = try exchange.local.locked { try exchange.run(shared, replacing: nil) }
      #expect(try issuers(exchange, theirs) == ["Shared"])
      _ = try exchange.local.locked { try exchange.run(shared, replacing: theirs) }
      try FileManager.default.removeItem(atPath: exchange.local.vaultPath)
      #expect(throws: Failure.self) { try exchange.local.locked { try exchange.run(shared, replacing: theirs) } }
      #expect(try exchange.local.read() == nil)
    }
  }

  @Test func `machines whose passphrases were changed in the same millisecond agree on one`() async throws {
    try await Places.withTemporaryFolder { place in
      try FileManager.default.createDirectory(atPath: place + "/shared", withIntermediateDirectories: false)
      var machines: [FolderExchange] = []
      for name in ["first", "second", "third"] {
        let local = try VaultFolder(path: "\(place)/\(name)", environment: [:])
        // The salt of the slot, and so its bytes, are others on each machine.
        let made = try opened(own, entry("Shared")).file
        try local.locked { try local.write(made) }
        machines.append(FolderExchange(folder: place + "/shared", local: local))
      }
      func exchange(_ machine: FolderExchange) throws -> VaultExchange.Report {
        let file = try #require(try machine.local.read())
        let known = try file.opened(with: own, at: machine.local.vaultPath)
        return try machine.local.locked { try machine.run(known, replacing: own) }
      }
      for machine in machines + machines { _ = try exchange(machine) }
      let shared = try #require(try machines[0].shared()).slots
      for machine in machines {
        #expect(try machine.local.read()?.slots == shared)
        let report = try exchange(machine)
        #expect(!report.hasSent && !report.hasReceived)
      }
    }
  }

  @Test func `a new folder is made only after the passphrase is right`() async throws {
    try await withShell { shell in
      try shell.makeVault([entry("Mine")])
      try Data("other words\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/wrong"))
      let wrong = try await shell.run("sync shared --passphrase-file wrong")
      #expect(wrong.code == 77 && !wrong.errors.contains { $0.contains("makes the folder") }, "\(wrong)")
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/shared"))
      // A folder that cannot be made is reported before a passphrase is asked for.
      let lost = try await shell.run("sync none/shared --passphrase-file wrong")
      #expect(lost.code == 66 && lost.errors[0].contains("cannot make the folder none/shared"), "\(lost)")
      let made = try await shell.run("sync shared")
      #expect(made.output == ["sent changes"] && made.errors == ["This makes the folder shared."], "\(made)")
    }
  }
}
