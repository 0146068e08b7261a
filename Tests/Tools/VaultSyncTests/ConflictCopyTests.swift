import AuthenticatorVault
import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct ConflictCopyTests {
  private let key = VaultKey()

  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "sallyport-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try body(folder.path)
  }

  private func exchange(_ vault: inout Vault, _ folder: String) throws -> VaultExchange.Report {
    try VaultExchange.run(
      &vault, through: FolderStore(folder: folder), name: "codes.vault",
      open: { data throws(VaultError) in try Vault(sealed: data, with: key) }, seal: { $0.sealed(with: key) },
      save: { _ in })
  }

  private func sealed(_ issuer: String) -> Data {
    var vault = Vault()
    vault.add(VaultEntry(issuer: issuer, account: "", secret: Array(issuer.utf8), at: 1), at: 1)
    return vault.sealed(with: key)
  }

  @Test(
    "A copy with the name that a synchronizer gives is merged and removed",
    arguments: [
      "codes.sync-conflict-20261124-080001-ABCDEF7.vault", "codes.sync-conflict-20161124-080001.vault",
      "codes (conflicted copy 2026-11-24 080001).vault", "codes (conflicted copy alice 2026-11-24 080001).vault",
      "codes (Anna's conflicted copy 2026-11-24).vault", "codes (desk's conflicted copy 2026-11-24 (2)).vault",
      "codes_conflict-20141124-080001.vault", "codes (1).vault", "codes[Conflict].vault",
      "codes (Case Conflict).vault", "codes (SFConflict a@b.example 2026-11-24-08-00-01).vault",
      "codes-DESKTOP-4F2K9QX.vault", "codes-LAPTOP-4F2K9QXA-2.vault", "codes-tower-safeBackup-0001.vault",
      "codes.vault.sync-conflict-20261124-080001-ABCDEF7",
    ])
  func copies(_ name: String) throws {
    try withFolder { folder in
      try sealed("copied").write(to: URL(fileURLWithPath: folder + "/" + name))
      var vault = Vault()
      let report = try exchange(&vault, folder)
      #expect(report.left.isEmpty && vault.entries.map(\.issuer) == ["copied"])
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["codes.vault"])
    }
  }

  @Test(
    "A file of the user's is named and left, also if it is a vault under the same key",
    arguments: [
      "codes.vault.my-backup-2026", "codes.vault.bak", "codes-backup.vault", "codes-old.vault", "codes2.vault",
      "codes (copy).vault", "codes (before the move).vault", "codes.sync-conflict-20261124-1-ABC.vault",
      "codes (1) (my own).vault", "codes conflicted copy.vault", "codes-DESKTOP.vault", "codes (1234).vault",
    ])
  func others(_ name: String) throws {
    try withFolder { folder in
      let place = folder + "/" + name
      let bytes = sealed("kept")
      try bytes.write(to: URL(fileURLWithPath: place))
      var vault = Vault()
      let report = try exchange(&vault, folder)
      #expect(report.left.keys.sorted() == [place] && vault.entries.isEmpty)
      #expect(try Data(contentsOf: URL(fileURLWithPath: place)) == bytes)
    }
  }

  @Test func `a copy that is too long or cannot be read is named, and the exchange goes on`() throws {
    try withFolder { folder in
      let long = folder + "/codes (1).vault"
      #expect(FileManager.default.createFile(atPath: long, contents: Data()))
      #expect(truncate(long, 70 << 20) == 0)
      try sealed("other").write(to: URL(fileURLWithPath: folder + "/codes (2).vault"))
      var vault = Vault()
      vault.add(VaultEntry(issuer: "mine", account: "", secret: [1], at: 1), at: 1)
      let report = try exchange(&vault, folder)
      #expect(report.left.keys.sorted() == [long] && report.hasSent)
      #expect(vault.entries.map(\.issuer) == ["mine", "other"])
      #expect(FileManager.default.fileExists(atPath: long))
    }
  }

  @Test func `a copy that is a link is named and left, and a value beyond 64 MiB is not written`() throws {
    try withFolder { folder in
      let link = folder + "/codes (1).vault"
      try sealed("elsewhere").write(to: URL(fileURLWithPath: folder + "/target"))
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "target")
      var vault = Vault()
      vault.add(VaultEntry(issuer: "mine", account: "", secret: [1], at: 1), at: 1)
      let report = try exchange(&vault, folder)
      #expect(report.left[link].map { "\($0)" }?.contains("symbolic link") == true && report.hasSent)
      #expect(vault.entries.map(\.issuer) == ["mine"])
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "target")
      let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/codes.vault"))
      #expect(throws: UbiquitousStoreError.self) {
        try FolderStore(folder: folder).set(Data(count: 64 << 20 + 1), forKey: "codes.vault")
      }
      #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/codes.vault")) == before)
    }
  }

  @Test func `copies beyond 64 MiB together are named, and left for the next exchange`() throws {
    try withFolder { folder in
      let names = (1...3).map { folder + "/codes (\($0)).vault" }
      for (name, size) in zip(names, [40 << 20, 25 << 20, 24 << 20]) {
        #expect(FileManager.default.createFile(atPath: name, contents: Data()))
        #expect(truncate(name, size) == 0)
      }
      var vault = Vault()
      let report = try exchange(&vault, folder)
      // None of them is a vault. Only the second one was not read.
      #expect(report.left.keys.sorted() == names)
      for (name, isRead) in zip(names, [true, false, true]) {
        let reason = report.left[name].map { "\($0)" } ?? ""
        #expect(reason.contains("the next exchange reads this one") != isRead, "\(name): \(reason)")
      }
    }
  }

  @Test func `entries that another device has removed are reported by name`() throws {
    try withFolder { folder in
      var phone = Vault()
      phone.add(VaultEntry(issuer: "gone", account: "", secret: [1], at: 1), at: 1)
      var laptop = phone
      let name = phone.entries[0].name
      _ = try exchange(&phone, folder)
      try phone.remove(phone.entries[0].id, at: 5)
      let own = try exchange(&phone, folder)
      #expect(own.removed.isEmpty)
      let report = try exchange(&laptop, folder)
      #expect(laptop.entries.isEmpty && report.hasReceived && report.removed == [name])
    }
  }
}
