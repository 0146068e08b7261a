import AuthenticatorVault
import Crypto
import Foundation
import Glibc
import OneTimePasswords
import QRCodes
import QREncoding
import TestSupport
import Testing
import VaultFormats

private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 1)
private let bank = VaultEntry(
  issuer: "Bank", account: "bob", secret: Array("12345678901234567890".utf8), kind: .hotp, counter: 0, at: 1)

extension Shell {
  fileprivate func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
  }

  /// A file of a vault with this JSON, as another program may write it.
  fileprivate func sealed(_ json: String, key: VaultKey, slotsChanged: String = "1") throws -> Data {
    let slots = VaultFile.Slots([try PassphraseSlot(key, passphrase: Self.passphrase, cost: 1024)], changedAt: 1)
    let text = String(decoding: VaultFile(Vault(), key: key, slots: slots).bytes, as: UTF8.self)
    let header = text.prefix { $0 != "\n" }
      .replacing("\"slotsChanged\":1", with: "\"slotsChanged\":\(slotsChanged)")
    let box = CombinedBox.seal(Data(json.utf8), header: Data(header.utf8), with: key).base64EncodedString()
    let lines = "\(header)\n\(box)\n"
    let checksum = SHA256.hash(data: Data(lines.utf8)).map { String(format: "%02x", $0) }.joined()
    return Data((lines + checksum + "\n").utf8)
  }
}

@Suite("authenticator and what strangers write", .timeLimit(.minutes(5)))
struct HostileInputTests {
  @Test func `a time of 2FAS at the end of all times ends no command`() async throws {
    try await withShell { shell in
      try shell.makeVault([bank])
      try shell.write(
        #"{"services":[{"name":"A","secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ","updatedAt":9223372036854775807}]}"#,
        "backup.2fas")
      #expect(try await shell.run("import backup.2fas").code == 0)
      for line in ["edit A --note x", "rm A", "restore A", "rm A", "import backup.2fas", "check"] {
        let run = try await shell.run(line)
        #expect(run.code == 0, "\(line): \(run)")
      }
    }
  }

  @Test("Impossible times of a partner end no command, take nothing away, and check names them")
  func partner() async throws {
    let last = "9223372036854775807"
    try await withShell { shell in
      let key = try shell.makeVault([alice, bank])
      let folder = shell.folder + "/shared"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let token = #"{"created":\#(last),"id":"other","issuer":"Other","secret":"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"}"#
      let json =
        #"{"removed":[{"id":"\#(alice.id)","removed":\#(last)},{"id":"none","removed":-1}],"tokens":[\#(token)],"#
        + #""version":1}"#
      let bytes = try shell.sealed(json, key: key, slotsChanged: last)
      try bytes.write(to: URL(fileURLWithPath: folder + "/authenticator.vault"))
      for line in [
        "sync shared", "list", "edit alice --note x", "rm alice", "restore alice", "rm Other", "restore Other",
        "passphrase --new-passphrase-file passphrase", "sync shared", "check",
      ] {
        let run = try await shell.run(line)
        #expect(run.code == 0, "\(line): \(run)")
      }
      #expect(try await shell.run("list").output.count == 3)
      // The same file as this machine's own, which an earlier version may have saved.
      try bytes.write(to: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      let check = try await shell.run("check")
      #expect(check.code == 1, "\(check)")
      #expect(check.output.filter { $0.contains("\(last) is not possible") }.count == 3, "\(check)")
      #expect(try await shell.run("edit Other --note x").code == 0)
      #expect(try await shell.run("check").output.filter { $0.contains("not possible") }.count <= 1)
    }
  }

  @Test func `values of an unknown kind that are nested deep do not come in, and end no command`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let value = String(repeating: "[", count: 508) + String(repeating: "]", count: 508)
      try shell.write(
        """
        {"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"entries":[
        {"type":"motp","name":"deep","info":{"secret":"GEZDGNBV","x":\(value)}}]}}
        """, "deep.json")
      #expect(try await shell.run("import deep.json").code == 65)
      #expect(try await shell.run("rm deep").code == 66)
    }
  }

  @Test func `a shared file whose slots ask for too much work is refused`() async throws {
    try await withShell { shell in
      let key = VaultKey()
      let slots = try (0..<9).map { _ in try PassphraseSlot(key, passphrase: Shell.passphrase, cost: 1024) }
      let bytes = VaultFile(Vault(), key: key, slots: .init(slots, changedAt: 1)).bytes
      try FileManager.default.createDirectory(atPath: shell.folder + "/shared", withIntermediateDirectories: true)
      try bytes.write(to: URL(fileURLWithPath: shell.folder + "/shared/authenticator.vault"))
      let run = try await shell.run("sync shared")
      #expect(run.code == 65 && run.errors[0].contains("more work"), "\(run)")
    }
  }

  @Test func `a backup in the shared folder stays, and a long file in it stops nothing`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let folder = shell.folder + "/shared"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      #expect(try await shell.run("sync shared").code == 0)
      try FileManager.default.copyItem(
        atPath: folder + "/authenticator.vault", toPath: folder + "/authenticator.vault.my-backup-2026")
      let long = folder + "/authenticator (1).vault"
      #expect(FileManager.default.createFile(atPath: long, contents: Data()) && truncate(long, 70 << 20) == 0)
      let run = try await shell.run("sync shared")
      #expect(run.code == 0 && run.errors.count == 2, "\(run)")
      #expect(run.errors.contains { $0.contains("my-backup-2026 was left") }, "\(run)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).count == 3)
    }
  }

  @Test func `a file's name, an entry's name and a folder's name steer no terminal`() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      let name = "A\u{9B}2J:b\u{202E}c"
      let added = try await shell.run("add", name, input: "GEZDGNBV")
      #expect(added.code == 0 && added.errors[0].contains("has 40 bits"), "\(added)")
      try Data(try QRCode("otpauth://totp/A%C2%9B2J:b%E2%80%AEc?secret=GEZDGNBVGY").png())
        .write(to: URL(fileURLWithPath: shell.folder + "/code.png"))
      let scanned = try await shell.run("scan code.png")
      #expect(scanned.code == 0 && scanned.errors[0].contains("bits"), "\(scanned)")
      var other = shell
      other.vault = "va\u{1B}[2Jult"
      let made = try await other.run("add name", input: Shell.secret)
      #expect(made.code == 0 && made.errors[0].contains("makes a vault"), "\(made)")
      for line in [added, scanned, made].flatMap({ $0.errors + $0.output }) {
        #expect(!line.unicodeScalars.contains { ["\u{9B}", "\u{202E}", "\u{1B}"].contains($0) }, "\(line)")
      }
    }
  }

  @Test func `more than 10,000 entries can be exported`() async throws {
    try await withShell { shell in
      try shell.makeVault(
        (0..<10_001).map { VaultEntry(issuer: "S", account: "\($0)", secret: Array("the secret \($0)".utf8), at: 1) })
      for format in ["aegis", "google"] {
        let run = try await shell.run("export --to \(format) --plain \(format).out")
        #expect(
          run.code == 0 && run.output == ["\(format).out  10001 entries, opened again"], "\(run.errors.prefix(3))")
      }
    }
  }

  @Test func `an export without a fitting entry says so and writes nothing`() async throws {
    try await withShell { shell in
      try shell.makeVault([VaultEntry(issuer: "S", account: "a", secret: [1, 2], kind: .steam, digits: 5, at: 1)])
      let run = try await shell.run("export --to google --plain out")
      #expect(
        run.code == 1 && run.errors[0].contains("S: a") && run.errors[1].contains("no entry has a place"), "\(run)")
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/out"))
    }
  }

  @Test func `a trashed entry is named, and the exit code is that of success`() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      try shell.write(
        """
        otpauth://totp/E:bob?secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U&codeDisplay=%7B%22trashed%22%3Atrue%7D
        otpauth://totp/E:eve?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&codeDisplay=%7B%22trashed%22%3Afalse%7D
        """, "ente.txt")
      let run = try await shell.run("import ente.txt")
      #expect(
        run.code == 0 && run.output == ["E: eve  added"] && run.errors.joined().contains("in the trash"), "\(run)")
    }
  }

  @Test func `a migration link is no secret, a fault has its own hint, and qr draws what scan reads`() async throws {
    try await withShell { shell in
      try shell.makeVault([
        VaultEntry(issuer: "Ten", account: "a", secret: Array("12345678901234567890".utf8), digits: 10, at: 1)
      ])
      let added = try await shell.run("add", input: "otpauth-migration://offline?data=CAE=")
      #expect(added.code == 64 && added.errors.joined().contains("import FILE"), "\(added)")
      let drawn = try await shell.run("qr Ten --output code.png")
      #expect(drawn.code == 0, "\(drawn)")
      #expect(try await shell.run("scan code.png").output == ["Ten: a  already there"])
      try shell.write("no picture", "text.png")
      let text = try await shell.run("scan text.png")
      #expect(text.code == 65 && !text.errors.joined().contains("sharp"), "\(text)")
      try Data(try QRCode("https://example.com").png()).write(to: URL(fileURLWithPath: shell.folder + "/web.png"))
      let web = try await shell.run("scan web.png")
      #expect(web.code == 65 && !web.errors.joined().contains("sharp"), "\(web)")
    }
  }

  @Test("a migration code that cannot be read is named with its picture, and the other pictures come in")
  func brokenMigration() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      let entry = VaultEntry(issuer: "Part", account: "b", secret: Array("12345678901234567890".utf8), at: 1)
      let part = String(
        decoding: try VaultWriter.write([entry], as: .google, password: nil, at: 1).bytes, as: UTF8.self)
      for (name, text) in [
        ("good", "otpauth://totp/Good:a?secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U"),
        ("broken", "otpauth-migration://offline?data=!"), ("part", part.trimmingCharacters(in: .newlines)),
        // The first part of one, without entries.
        ("empty", "otpauth-migration://offline?data=EAEYASAA"),
      ] {
        try Data(try QRCode(text).png()).write(to: URL(fileURLWithPath: "\(shell.folder)/\(name).png"))
      }
      let empty = try await shell.run("scan empty.png")
      #expect(empty.code == 65 && empty.errors == ["error: there is no entry in empty.png"], "\(empty)")
      let alone = try await shell.run("scan broken.png")
      #expect(alone.code == 65 && alone.errors[0].contains("broken.png: "), "\(alone)")
      let first = try await shell.run("scan broken.png good.png")
      #expect(first.code == 65 && first.output == ["Good: a  added"], "\(first)")
      #expect(first.errors.joined().contains("broken.png: ") && !first.errors.joined().contains("bug"), "\(first)")
      let second = try await shell.run("scan part.png broken.png")
      #expect(second.code == 65 && second.output == ["Part: b  added"], "\(second)")
      #expect(second.errors.joined().contains("broken.png: "), "\(second)")
    }
  }

  @Test func `sync makes the folder in one that is there`() async throws {
    try await withShell { shell in
      var empty = shell
      empty.vault = "empty"
      #expect(try await empty.run("sync shared").code == 66)
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/shared"))
      try shell.makeVault([alice])
      let made = try await shell.run("sync shared")
      #expect(made.code == 0 && made.output == ["sent changes"], "\(made)")
      #expect(try await shell.run("sync none/shared").code == 66)
      try shell.write("", "file")
      #expect(try await shell.run("sync file").code == 66)
    }
  }
}

@Suite("authenticator and programs that do not read", .timeLimit(.minutes(5)))
struct ClosedPipeTests {
  /// Runs `authenticator` without a terminal, with `script` as the clipboard program.
  private func copy(_ shell: Shell, _ script: String, _ words: [String]) async throws -> Shell.Result {
    let folder = shell.folder + "/bin"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for name in ["xclip", "xsel"] {
      try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
      chmod(folder + "/" + name, 0o755)
    }
    var environment = shell.environment
    environment["DISPLAY"] = ":99"
    environment["PATH"] = folder + ":/usr/bin:/bin"
    let run = try await ChildProcess.run(
      try Places.tool("setsid"), ["-w", try Places.product("authenticator")] + words, environment: environment)
    return Shell.Result(code: run.exit.code, output: run.output, errors: run.errors)
  }

  @Test func `a clipboard program that does not read ends no command, and the code of a counter is not lost`()
    async throws
  {
    try await withShell { shell in
      try shell.makeVault([bank])
      let counters = (0..<20).map { OneTimePassword.standard.code(secret: bank.secret, counter: $0) }
      for code in counters {
        let run = try await copy(shell, "exec 0<&-; exit 3", ["code", "bank", "--copy"])
        #expect(run.code == 69 && run.output == [code], "\(run)")
      }
      let words = ["code", "bank", "--copy", "--clear-after", "off"]
      let taken = try await copy(shell, "exec cat >\(shell.folder)/taken", words)
      #expect(taken.code == 0 && taken.output.isEmpty)
      let text = try String(contentsOfFile: shell.folder + "/taken", encoding: .utf8)
      #expect(text == OneTimePassword.standard.code(secret: bank.secret, counter: 20))
    }
  }

  @Test(
    "A command whose reader has gone ends quietly",
    arguments: ["list", "list --json", "code alice", "check", "--help", "restore"])
  func standardOutput(_ line: String) async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      // The read end is closed before the command starts.
      let script = """
        import os, subprocess, sys
        reader, writer = os.pipe()
        os.close(reader)
        run = subprocess.run(sys.argv[1:], stdout=writer, stderr=subprocess.PIPE, restore_signals=True)
        print(run.returncode, len(run.stderr))
        """
      let run = try await ChildProcess.run(
        "/usr/bin/python3",
        ["-c", script, try Places.product("authenticator")] + line.split(separator: " ").map(String.init),
        environment: shell.environment)
      #expect(run.output == ["0 0"], "\(run)")
    }
  }
}
