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
  private func withShell(_ body: (Shell) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { try await body(Shell($0)) }
  }

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
}
