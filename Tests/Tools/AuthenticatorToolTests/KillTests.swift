import AuthenticatorVault
import Foundation
import Glibc
import OneTimePasswords
import TestSupport
import Testing

/// Each command that writes is killed at moments that are spread over all of its run.
@Suite("authenticator, killed while it writes: the old file or the new one", .serialized, .timeLimit(.minutes(15)))
struct KillTests {
  private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 1)

  /// Runs `command` of `shell` again and again and kills it: `count` times in all, or more until it was killed both
  /// before and after it had written.
  ///
  /// - Parameters:
  ///   - prepare: Called before each run; it returns the further arguments.
  ///   - isNew: Whether the files are as after a whole run; throws if they are neither that nor as before it.
  private func kill(
    _ count: Int, _ command: String, in shell: Shell, prepare: (Int) async throws -> [String],
    isNew: (Int) throws -> Bool
  ) async throws {
    let words = command.split(separator: " ").map(String.init)
    var random = SeededGenerator(seed: 5)
    var (olds, news, number) = (0, 0, 0)
    // How long a whole run takes: that of the second one, because the first changes a passphrase whose slot is cheap.
    var length = 0
    for number in [-1, 0] {
      let more = try await prepare(number)
      let start = ContinuousClock.now
      let whole = try await ChildProcess.run(
        try Places.product("authenticator"), words + more, environment: shell.environment, in: shell.folder)
      length = Int((ContinuousClock.now - start) / .microseconds(1))
      #expect(whole.exit == .code(0), "\(whole)")
      #expect(try isNew(number))
    }
    // On a busy machine a run takes a time of its own: the moments follow it, faster if there are few, so that both ends
    // remain likely.
    let adaptation = count < 40 ? 4 : 20
    while number < count || (min(olds, news) <= count / 40 && number < count * 6) {
      number += 1
      let more = try await prepare(number)
      let child = try ChildProcess(
        try Places.product("authenticator"), words + more, environment: shell.environment, in: shell.folder)
      try await Task.sleep(for: .microseconds(Int.random(in: length / 4...length * 6 / 5, using: &random)))
      child.send(SIGKILL)
      _ = try await child.exit()
      if try isNew(number) {
        news += 1
        length -= length / adaptation
      } else {
        olds += 1
        length += length / adaptation
      }
    }
    #expect(olds > count / 40 && news > count / 40, "\(command): \(olds) old, \(news) new")
    #expect(try await shell.run("check").code == 0)
    // The next run that writes removes what a killed one left.
    #expect(try await shell.run("edit alice --note end").code == 0)
    let left = try FileManager.default.contentsOfDirectory(atPath: shell.vaultPath).sorted()
    #expect(left == ["lock", "vault", "versions"], "\(left)")
  }

  private func read(_ path: String) throws -> VaultFile {
    try VaultFile(bytes: Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private func withVault(_ body: (Shell, VaultKey) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Shell(folder)
      try await body(shell, try shell.makeVault([alice]))
    }
  }

  @Test func `edit, 90 times`() async throws {
    try await withVault { shell, key in
      var last = ""
      try await kill(90, "edit alice --note", in: shell, prepare: { ["note \($0)"] }) { number in
        let note = try read(shell.vaultPath + "/vault").vault(key: key).entries[0].note
        defer { last = note }
        #expect(note == last || note == "note \(number)")
        return note != last
      }
    }
  }

  @Test func `import, 50 times`() async throws {
    try await withVault { shell, key in
      var last = 1
      try await kill(50, "import new.txt", in: shell) { number in
        let lines = (0..<20).map {
          "otpauth://totp/S\(number):\($0)?secret=\(Base32.encode(Array("\(number) \($0)".utf8)))\n"
        }
        try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: shell.folder + "/new.txt"))
        return []
      } isNew: { _ in
        let count = try read(shell.vaultPath + "/vault").vault(key: key).entries.count
        defer { last = count }
        #expect(count == last || count == last + 20)
        return count != last
      }
    }
  }

  /// Two files are written: that of the vault, then that of the folder.
  @Test func `sync, 50 times`() async throws {
    try await withVault { shell, key in
      let folder = shell.folder + "/shared"
      let place = folder + "/authenticator.vault"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let slots = try read(shell.vaultPath + "/vault").slots
      var ids: Set<String> = [alice.id]
      try await kill(50, "sync shared", in: shell) { number in
        // Both sides have a new entry.
        for (path, side) in [(shell.vaultPath + "/vault", "here"), (place, "there")] {
          var vault = (try? read(path).vault(key: key)) ?? Vault()
          let new = VaultEntry(issuer: side, account: "\(number)", secret: Array("\(side) \(number)".utf8), at: 2)
          vault.add(new, at: 2)
          ids.insert(new.id)
          try VaultFile(vault, key: key, slots: slots).bytes.write(to: URL(fileURLWithPath: path))
          chmod(path, 0o600)
        }
        return []
      } isNew: { number in
        let here = try read(shell.vaultPath + "/vault").vault(key: key)
        let there = try read(place).vault(key: key)
        #expect(Set((here.entries + there.entries).map(\.id)) == ids, "\(number): an entry is lost")
        return here == there
      }
      #expect(try await shell.run("sync shared").code == 0)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["authenticator.vault"])
      #expect(Set(try read(place).vault(key: key).entries.map(\.id)) == ids)
    }
  }

  /// Most of a run is scrypt, at its full cost.
  @Test func `passphrase, 10 times`() async throws {
    try await withVault { shell, key in
      let passphrases = shell.folder + "/passphrase"
      var last = try read(shell.vaultPath + "/vault").slots
      var present = Shell.passphrase
      try await kill(10, "passphrase --new-passphrase-file new", in: shell) { number in
        try Data((present + "\n").utf8).write(to: URL(fileURLWithPath: passphrases))
        try Data("words \(number)\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/new"))
        return []
      } isNew: { number in
        let file = try read(shell.vaultPath + "/vault")
        #expect(try file.vault(key: key).entries.count == 1)
        guard file.slots != last else { return false }
        (last, present) = (file.slots, "words \(number)")
        #expect(try file.key(passphrase: present) == key)
        try Data((present + "\n").utf8).write(to: URL(fileURLWithPath: passphrases))
        return true
      }
    }
  }
}
