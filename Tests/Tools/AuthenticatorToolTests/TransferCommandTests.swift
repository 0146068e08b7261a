import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing

private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 1)
private let bank = VaultEntry(
  issuer: "Bank", account: "bob", secret: Array("12345678901234567890".utf8), kind: .hotp, counter: 0, at: 1)

@Suite("What authenticator reads and writes for others", .timeLimit(.minutes(5)))
struct TransferCommandTests {
  @Test func `a backup with a higher counter raises that of the vault`() async throws {
    try await withShell { shell in
      try shell.makeVault([bank])
      let link = { (counter: Int) in "otpauth://hotp/Bank:bob?secret=\(Shell.secret)&issuer=Bank&counter=\(counter)\n" }
      try Data((link(7) + link(900) + link(5)).utf8).write(to: URL(fileURLWithPath: shell.folder + "/links.txt"))
      let raised = [
        "Bank: bob  already there; its counter is now 7", "Bank: bob  already there; its counter is now 900",
        "Bank: bob  already there",
      ]
      for line in ["import links.txt --dry-run", "import links.txt"] {
        let run = try await shell.run(line)
        #expect(run.code == 0 && run.output == raised, "\(run)")
      }
      #expect(try await shell.run("list --json").output[0].contains(#""counter":900"#))
      #expect(try await shell.run("import links.txt").output == Array(repeating: "Bank: bob  already there", count: 3))
    }
  }

  @Test func `a passphrase that is not UTF-8 is refused with the name of its file`() async throws {
    try await withShell { shell in
      for (name, bytes) in [("latin1", [0xE4, 0xF6, 0x0A]), ("other", [0xFF, 0xFE, 0x0A])] as [(String, [UInt8])] {
        try Data(bytes).write(to: URL(fileURLWithPath: shell.folder + "/" + name))
        let run = try await shell.run("add a --passphrase-file \(name)", input: Shell.secret)
        #expect(run.code == 65 && run.errors.contains { $0.contains("first line of \(name) is not UTF-8") }, "\(run)")
        #expect(!FileManager.default.fileExists(atPath: shell.vaultPath + "/vault"))
      }
      // What follows the first line is not looked at.
      try Data(Array("gr\u{FC}n\r\n".utf8) + [0xFF]).write(to: URL(fileURLWithPath: shell.folder + "/good"))
      #expect(try await shell.run("add a --passphrase-file good", input: Shell.secret).code == 0)
      try Data("gr\u{FC}n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/same"))
      #expect(try await shell.run("code a --passphrase-file same").code == 0)
    }
  }

  @Test func `an entry that a file cannot carry is named with exit code 1, and the others are exported`() async throws {
    try await withShell { shell in
      let secret = Array("12345678901234567890".utf8)
      try shell.makeVault([
        alice, VaultEntry(issuer: "Ten", account: "t", secret: secret, digits: 10, at: 1),
        VaultEntry(issuer: "Slow", account: "s", secret: secret, kind: .totp(period: 45), at: 1),
        VaultEntry(issuer: "Steam", account: "me", secret: secret, kind: .steam, algorithm: .sha256, digits: 6, at: 1),
        VaultEntry(
          issuer: "Note", account: "n", secret: secret + [1], note: String(repeating: "\u{E4}", count: 17_000), at: 1),
      ])
      for (format, missing) in [("aegis", ["Note: n"]), ("2fas", ["Slow: s", "Ten: t"]), ("otpauth", [])] {
        let run = try await shell.run("export --to \(format) --plain \(format).out")
        #expect(run.code == (missing.isEmpty ? 0 : 1), "\(run)")
        #expect(run.output == ["\(format).out  \(5 - missing.count) entries, opened again"], "\(run)")
        for name in missing { #expect(run.errors.contains { $0.hasPrefix("warning: \(name): ") }, "\(run)") }
      }
    }
  }

  @Test func `an export to standard output is refused before a password is asked for`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      for line in ["export --to aegis -", "export --to otpauth --plain -"] {
        let run = try await shell.run(line)
        #expect(run.code == 64 && run.errors[0].contains("not written to standard output"), "\(run)")
      }
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/-"))
    }
  }

  @Test func `an export with a password and --plain is refused, and nothing is written`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      for format in ["aegis", "otpauth"] {
        let run = try await shell.run("export --to \(format) --plain --password-file passphrase out")
        #expect(run.code == 64 && run.errors[0].contains("exclude one another"), "\(run)")
      }
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/out"))
    }
  }

  @Test func `qr prints the link as JSON`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let run = try await shell.run("qr alice --json")
      #expect(run.code == 0 && run.output.count == 1, "\(run)")
      let object = try JSONDecoder().decode([String: String].self, from: Data(run.output[0].utf8))
      #expect(object["uri"] == alice.uri?.text)
    }
  }

  @Test func `edit refuses a group without a name, and groups that it is to remove`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let before = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      let empty = try await shell.run("edit alice --tag work --tag", "")
      #expect(empty.code == 64 && empty.errors.last == "hint: --no-tags removes all groups", "\(empty)")
      let both = try await shell.run("edit alice --tag work --no-tags")
      #expect(both.code == 64, "\(both)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault")) == before)
    }
  }

  @Test func `add and edit refuse long texts, and Steam's codes with the parameters of others`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let before = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      let name = String(repeating: "n", count: 4097)
      let note = String(repeating: "n", count: 16_385)
      #expect(try await shell.run("add", name + ":a", input: Shell.secret).code == 65)
      let link = try await shell.run("add", input: "otpauth://totp/\(name):a?secret=MFRGGZDFMZTWQ2LK")
      #expect(link.code == 65 && link.errors[0].contains("4097 bytes"), "\(link)")
      for (option, text) in [("--issuer", name), ("--account", name), ("--note", note), ("--tag", name)] {
        let run = try await shell.run("edit alice", option, text)
        #expect(run.code == 64 && run.errors[0].contains("are the most"), "\(option): \(run.code ?? -1)")
      }
      for options in ["--algorithm SHA256", "--period 60", "--digits 6"] {
        let run = try await shell.run("add Steam:me --type steam \(options)", input: Shell.secret)
        #expect(run.code == 64 && run.errors[0].contains("only codes of SHA1"), "\(run)")
      }
      let cut = try await shell.run("add", input: "steam:JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")
      #expect(cut.code == 65 && cut.errors[0].contains("steam://") && !cut.errors[0].contains("JBSW"), "\(cut)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault")) == before)
      let good = try await shell.run("add Steam:me --type steam --algorithm SHA1 --digits 5", input: Shell.secret)
      #expect(good.code == 0, "\(good)")
    }
  }
}
