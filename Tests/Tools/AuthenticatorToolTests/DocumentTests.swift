import AuthenticatorVault
import Foundation
import Glibc
import QRCodes
import QREncoding
import TestSupport
import Testing
import VaultFormats

@Suite("The article about authenticator", .timeLimit(.minutes(3)))
struct DocumentTests {
  private static let article = "Sources/Tools/authenticator/Authenticator.docc/Authenticator.md"

  /// The lines of the article's blocks, in their order.
  private static func commands() throws -> [String] {
    let blocks = try ProjectFile.text(article).components(separatedBy: "```sh\n").dropFirst()
    return blocks.flatMap { $0.components(separatedBy: "\n```")[0].split(separator: "\n").map(String.init) }
  }

  @Test func `each command of the article works, one after another`() async throws {
    let commands = try Self.commands()
    #expect(commands.count > 12)
    try await Places.withTemporaryFolder { folder in
      let shell = try Shell(folder)
      let secret = Array("12345678901234567890".utf8)
      try shell.makeVault([VaultEntry(issuer: "Work", account: "me", secret: secret, at: 1)])
      let other = VaultEntry(issuer: "Bank", account: "bob", secret: secret + [1], at: 1)
      let backup = try VaultWriter.write([other], as: .aegis, password: nil, at: 1).bytes
      let picture = try QRCode("otpauth://totp/Mail:bob?secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U").png()
      for (name, bytes) in [
        ("backup.json", backup), ("screenshot.png", picture), ("FILE", Array("\(Shell.passphrase)\n".utf8)),
        ("secret", Array("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJB\n".utf8)),
      ] {
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name))
      }
      try FileManager.default.createDirectory(
        atPath: folder + "/Nextcloud/codes", withIntermediateDirectories: true)
      // Pickers that choose the first line, and a clipboard that takes everything.
      try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: true)
      for (name, script) in [("rofi", "head -n 1"), ("dmenu", "head -n 1"), ("fzf", "head -n 1"), ("xclip", "cat")] {
        let path = folder + "/bin/" + name
        try Data("#!/bin/sh\nexec \(script)\n".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
      }
      // Each line is printed before it runs; what is typed comes from a file.
      let script = "set -ev -o pipefail\nexec <secret\n" + commands.joined(separator: "\n") + "\n"
      try Data(script.utf8).write(to: URL(fileURLWithPath: folder + "/script"))
      var environment = shell.environment
      environment["HOME"] = folder
      environment["DISPLAY"] = ":99"
      environment["PATH"] = folder + "/bin:" + Places.products + ":/usr/bin:/bin"
      let run = try await ChildProcess.run(
        try Places.tool("keyctl"), ["session", "-", "/bin/bash", "script"], environment: environment, in: folder)
      // They would wait for half a minute.
      for id in try await shell.waitingClearings() { kill(id, SIGTERM) }
      #expect(run.exit == .code(0), "\(run.errors.suffix(8))")
      #expect(run.output.contains("GitHub: alice  added") && run.output.contains("sent changes"), "\(run.output)")
    }
  }

  @Test func `every command of the program is in the article`() async throws {
    let text = try ProjectFile.text(Self.article)
    for words in try await ProgramHelp.commands(of: "authenticator") {
      #expect(words.isEmpty || text.contains("`\(words[0])"), "\(words)")
    }
  }

  @Test func `a kernel without keyrings is reported, and nothing is kept`() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Shell(folder)
      try shell.makeVault([])
      let run = try await ChildProcess.run(
        try Places.tool("strace"),
        ["-f", "-qq", "-o", "/dev/null", "-e", "inject=add_key,keyctl:error=ENOSYS"]
          + [try Places.product("authenticator"), "unlock"], environment: shell.environment)
      #expect(run.exit == .code(69), "\(run)")
      #expect(run.errors[0] == "error: the kernel keeps no key here: Function not implemented", "\(run)")
      #expect(run.errors[1].hasPrefix("hint: each command asks for the passphrase"))
    }
  }
}
