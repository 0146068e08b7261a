import AuthenticatorVault
import Commands
import Foundation
import Glibc
import TestSupport
import Testing

@testable import authenticator

private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 1)

@Suite("The folder of the vault", .timeLimit(.minutes(3)))
struct VaultFolderTests {
  @Test func `a vault that could not be read again is not written`() async throws {
    try await withShell { shell in
      let key = try shell.makeVault([alice])
      let folder = try VaultFolder(path: shell.vaultPath, environment: [:])
      let before = try #require(try folder.read())
      var vault = try before.vault(key: key)
      // 48 MiB of JSON are 64 MiB of base64.
      let note = String(repeating: "n", count: 49 << 20)
      vault.add(VaultEntry(issuer: "Long", account: "", secret: [1], note: note, at: 2), at: 2)
      let long = VaultFile(vault, key: key, slots: before.slots)
      #expect {
        try folder.locked { try folder.write(long) }
      } throws: { error in
        (error as? Failure)?.status == .cannotCreate && "\(error)".contains("are the most")
      }
      #expect(try folder.read() == before)
      #expect(try FileManager.default.contentsOfDirectory(atPath: shell.vaultPath + "/versions").isEmpty)
    }
  }

  @Test func `a link in the place of the vault is read, and no command replaces it`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let vault = shell.vaultPath + "/vault"
      try FileManager.default.moveItem(atPath: vault, toPath: shell.vaultPath + "/elsewhere")
      let before = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/elsewhere"))
      try FileManager.default.createSymbolicLink(atPath: vault, withDestinationPath: "elsewhere")
      #expect(try await shell.run("list").output.count == 1)
      let run = try await shell.run("edit alice --note x")
      #expect(run.code == 73 && run.errors[0].contains("is a symbolic link"), "\(run)")
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: vault) == "elsewhere")
      #expect(try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/elsewhere")) == before)
      // As earlier versions of the program kept it: a version that leads elsewhere, or nowhere.
      for (name, target) in [("vault-1000000000001", "elsewhere"), ("vault-1000000000002", "../elsewhere")] {
        try FileManager.default.createSymbolicLink(
          atPath: shell.vaultPath + "/versions/" + name, withDestinationPath: target)
      }
      let check = try await shell.run("check")
      #expect(check.code == 1 && check.output.contains { $0.hasPrefix("problem ") && $0.contains("symbolic link") })
      #expect(!check.output.contains { $0.contains("others can open") }, "\(check)")
      let listed = check.output.filter { $0.hasPrefix("version ") }
      #expect(listed.count == 2 && listed.allSatisfy { $0.hasSuffix("only a symbolic link") }, "\(check)")
    }
  }

  @Test func `a file of the user among the versions is neither a version nor removed`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let folder = try VaultFolder(path: shell.vaultPath, environment: [:])
      let own = ["vault-", "vault-0 (copy)", "vault-1000000000001.json", "vault-before-the-holidays"]
      for name in own { try Data([1]).write(to: URL(fileURLWithPath: shell.vaultPath + "/versions/" + name)) }
      let file = try #require(try folder.read())
      for _ in 0..<12 { try folder.locked { try folder.write(file) } }
      #expect(try folder.versions().count == 10)
      let names = try FileManager.default.contentsOfDirectory(atPath: shell.vaultPath + "/versions")
      #expect(names.count == 14 && Set(names).isSuperset(of: own), "\(names)")
    }
  }

  @Test func `too little memory for a passphrase is not told as a wrong one`() {
    // No system has a pebibyte, and so nothing is allocated.
    #expect(throws: VaultError.memory(needed: 1 << 30)) {
      try PassphraseSlot(VaultKey(), passphrase: "p", cost: 1 << 40)
    }
    let failure = Failure(VaultError.memory(needed: 128), at: "vault")
    #expect(failure.status == .unavailable && "\(failure)".contains("128 MiB"))
  }

  @Test("Where the file system has no hard links, a version is a copy", arguments: [EPERM, EOPNOTSUPP, ENOSYS, EMLINK])
  func copies(number: Int32) async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      var changed = try VaultFolder(path: shell.vaultPath, environment: [:])
      changed.makeLink = { _, _ in number }
      let folder = changed
      let file = try #require(try folder.read())
      for _ in 0..<12 { try folder.locked { try folder.write(file) } }
      #expect(try folder.read() == file)
      let versions = try folder.versions()
      #expect(versions.count == 10)
      for version in versions {
        #expect(try Data(contentsOf: URL(fileURLWithPath: version)) == file.bytes)
        #expect(VaultFolder.mode(of: version) == 0o600)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: shell.vaultPath + "/versions").count == 10)
    }
  }

  @Test func `a version that cannot be kept leaves the vault as it is`() async throws {
    try await withShell { shell in
      let key = try shell.makeVault([alice])
      var changed = try VaultFolder(path: shell.vaultPath, environment: [:])
      changed.makeLink = { _, _ in EIO }
      let folder = changed
      let before = try #require(try folder.read())
      let empty = VaultFile(Vault(), key: key, slots: before.slots)
      #expect {
        try folder.locked { try folder.write(empty) }
      } throws: { error in
        (error as? Failure)?.status == .cannotCreate && "\(error)".contains("cannot keep the present version")
      }
      #expect(try folder.read() == before)
      #expect(try folder.versions().isEmpty)
    }
  }

  @Test func `versions that cannot be listed are not taken for none`() async throws {
    try await withShell { shell in
      let folder = try VaultFolder(path: shell.vaultPath, environment: [:])
      #expect(try folder.versions().isEmpty)
      try shell.makeVault([alice])
      #expect(try folder.versions().isEmpty)
      // Not a folder: root can list one with any mode.
      try FileManager.default.removeItem(atPath: shell.vaultPath + "/vault")
      try FileManager.default.removeItem(atPath: shell.vaultPath + "/versions")
      try Data().write(to: URL(fileURLWithPath: shell.vaultPath + "/versions"))
      for line in ["add GitHub:alice", "check"] {
        let run = try await shell.run(line, input: Shell.secret)
        #expect(run.code == 66 && run.errors.contains { $0.contains("versions") }, "\(run)")
      }
      #expect(!FileManager.default.fileExists(atPath: shell.vaultPath + "/vault"))
    }
  }

  @Test func `the mode of a folder that was there stays, and its files are for their owner only`() async throws {
    try await withShell { shell in
      try FileManager.default.createDirectory(atPath: shell.vaultPath, withIntermediateDirectories: false)
      chmod(shell.vaultPath, 0o755)
      let first = try await shell.run("add GitHub:alice", input: Shell.secret)
      #expect(first.code == 0 && first.errors.contains { $0.contains("its mode is 755") }, "\(first)")
      let second = try await shell.run("edit alice --note x")
      #expect(second.code == 0 && second.errors.isEmpty, "\(second)")
      for (path, mode) in [("", 0o755), ("/vault", 0o600), ("/lock", 0o600), ("/versions", 0o700)] {
        let attributes = try FileManager.default.attributesOfItem(atPath: shell.vaultPath + path)
        #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
      }
    }
  }

  @Test func `a link in the folder of sync is refused by its name, and stays`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      #expect(try await shell.run("sync shared").code == 0)
      let file = shell.folder + "/shared/authenticator.vault"
      try FileManager.default.moveItem(atPath: file, toPath: shell.folder + "/elsewhere")
      try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: "../elsewhere")
      let run = try await shell.run("sync shared")
      #expect(run.code == 65 && run.errors[0].contains("authenticator.vault is a symbolic link"), "\(run)")
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file) == "../elsewhere")
    }
  }
}
