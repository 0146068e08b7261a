import AuthenticatorVault
import Foundation
import Glibc
import OneTimePasswords
import QRCodes
import QREncoding
import TestSupport
import Testing

private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: Array("12345678901234567890".utf8), at: 1)
private let bank = VaultEntry(
  issuer: "Bank", account: "bob", secret: Array("12345678901234567890".utf8), kind: .hotp, counter: 0, at: 1)

@Suite("The commands of authenticator", .timeLimit(.minutes(5)))
struct CommandTests {
  @Test("D-031 D-066 the first entry makes the vault, with files for its owner only")
  func first() async throws {
    try await withShell { shell in
      let nothing = try await shell.run("list")
      #expect(nothing.code == 66 && nothing.errors[0].hasPrefix("error: there is no vault in"))
      let added = try await shell.run("add GitHub:alice", input: Shell.secret + "\n")
      #expect(added.code == 0 && added.output == ["GitHub: alice  added"], "\(added)")
      let again = try await shell.run("add Git:other", input: "  gezd gnbv-gy3t qojq gezd gnbv gy3t qojq \n")
      #expect(again.output == ["Git: other  already there as GitHub: alice"], "\(again)")
      for (path, mode) in [("", 0o700), ("/vault", 0o600), ("/versions", 0o700)] {
        let attributes = try FileManager.default.attributesOfItem(atPath: shell.vaultPath + path)
        #expect(attributes[.posixPermissions] as? Int == mode, "\(path)")
      }
      let bytes = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      for text in ["GitHub", "GEZDGNBV", "1234567890"] { #expect(bytes.range(of: Data(text.utf8)) == nil) }
      let before = UInt64(Date().timeIntervalSince1970) / 30
      let code = try await shell.run("code git")
      let after = UInt64(Date().timeIntervalSince1970) / 30
      let possible = (before...after).map { OneTimePassword.standard.code(secret: alice.secret, counter: $0) }
      #expect(code.code == 0 && possible.contains(code.output[0]))
    }
  }

  @Test func `every command has a version and a help text with an example`() async throws {
    let commands = try await ProgramHelp.commands(of: "authenticator")
    #expect(commands.count > 10)
    for words in commands {
      let program = try Places.product("authenticator")
      #expect(try await ChildProcess.run(program, words + ["--version"]).output.count == 1, "\(words)")
      let help = try await ChildProcess.run(program, words + ["--help"], environment: ["TERM": "xterm"])
      #expect(help.exit == .code(0) && help.output.contains { $0.contains("Example") }, "\(words)")
    }
  }

  @Test func `help fits 80 columns, and its examples can be pasted`() async throws {
    #expect(try await ProgramHelp.faults(of: "authenticator") == [])
  }

  @Test func `a code from a counter is used once, and saved before it is shown`() async throws {
    try await withShell { shell in
      try shell.makeVault([bank])
      // RFC 4226, appendix D.
      for expected in ["755224", "287082", "359152"] {
        #expect(try await shell.run("code bank").output == [expected])
      }
      let json = try await shell.run("code bank --json")
      #expect(json.output[0].contains(#""code":"969429""#))
      #expect(try await shell.run("edit bank --counter 2").code == 64)
      #expect(try await shell.run("edit bank --counter 9").output == ["Bank: bob  changed"])
      #expect(try await shell.run("code bank").output == ["520489"])
    }
  }

  @Test("D-033 an entry is changed, removed, and restored")
  func changes() async throws {
    try await withShell { shell in
      try shell.makeVault([alice, bank])
      #expect(
        try await shell.run("edit github --account ada --tag work --note hi").output
          == ["GitHub: alice  is now GitHub: ada"])
      let listed = try await shell.run("list --json").output[0]
      #expect(listed.contains(#""tags":["work"]"#) && listed.contains(#""note":"hi""#) && !listed.contains("secret"))
      #expect(try await shell.run("rm ada bank").code == 0)
      #expect(try await shell.run("list").output.isEmpty)
      #expect(try await shell.run("code ada").code == 66)
      #expect(try await shell.run("restore").output.count == 2)
      #expect(try await shell.run("restore ada").output == ["GitHub: ada  restored"])
      #expect(try await shell.run("list").output.count == 1)
      #expect(try await shell.run("edit ada").code == 64)
    }
  }

  @Test("D-050 a QR code is drawn, and read into another vault")
  func scan() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      #expect(try await shell.run("qr alice --output code.png").output == ["code.png"])
      let mode = try FileManager.default.attributesOfItem(atPath: shell.folder + "/code.png")[.posixPermissions]
      #expect(mode as? Int == 0o600)
      #expect(try await shell.run("qr alice --output code.png").code == 73)
      // A link to nothing is a file that was there before, too.
      let dangling = shell.folder + "/link.svg"
      try FileManager.default.createSymbolicLink(
        atPath: dangling, withDestinationPath: "elsewhere.svg")
      #expect(try await shell.run("qr alice --output link.svg").code == 73)
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: dangling) == "elsewhere.svg")
      #expect(try await shell.run("qr alice --output code.gif").code == 64)
      #expect(try await shell.run("qr alice --output code.svg").code == 0)
      #expect(try await shell.run("qr alice").output.count > 15)
      var other = shell
      other.vault = "other"
      try other.makeVault([])
      try Data("no picture".utf8).write(to: URL(fileURLWithPath: shell.folder + "/text.png"))
      let scanned = try await other.run("scan text.png code.png")
      #expect(scanned.code == 65 && scanned.output == ["GitHub: alice  added"], "\(scanned)")
      #expect(scanned.errors[0].contains("text.png: neither a PNG nor a JPEG file"))
      #expect(try await other.run("scan code.png").output == ["GitHub: alice  already there"])
      #expect(try await other.run("scan text.png").code == 65)
      #expect(try await other.run("scan none.png").code == 66)
      #expect(try await other.run("scan none.png text.png").code == 65)
      try Data(try QRCode("https://example.com").png()).write(to: URL(fileURLWithPath: shell.folder + "/web.png"))
      let web = try await other.run("scan web.png")
      #expect(web.code == 65 && web.errors[0].contains("not an otpauth:// URI"), "\(web)")
      // The parts of a migration, in several pictures.
      #expect(try await shell.run("export --to google --plain links").code == 0)
      let link = try String(contentsOfFile: shell.folder + "/links", encoding: .utf8).split(separator: "\n")[0]
      try Data(try QRCode(String(link)).png()).write(to: URL(fileURLWithPath: shell.folder + "/part.png"))
      #expect(try await other.run("scan part.png").output == ["GitHub: alice  already there"])
    }
  }

  @Test func `files of other authenticators come in once, and go out again`() async throws {
    try await withShell { shell in
      let links = """
        otpauth://totp/GitHub:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=GitHub
        otpauth://totp/Bad:bob?secret=GEZDGNBVGY3TQOJQ&digits=99
        otpauth://steam/Steam:me?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJA&issuer=Steam
        """
      try Data(links.utf8).write(to: URL(fileURLWithPath: shell.folder + "/links.txt"))
      let dry = try await shell.run("import links.txt --dry-run")
      #expect(dry.code == 65 && dry.output == ["GitHub: alice  added", "Steam: me  added"], "\(dry)")
      #expect(!FileManager.default.fileExists(atPath: shell.vaultPath))
      try shell.makeVault([])
      let first = try await shell.run("import links.txt")
      #expect(first.code == 65 && first.output == dry.output)
      #expect(first.errors.contains("warning: links.txt: line 2: digits=99 is not possible"), "\(first)")
      let before = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      let second = try await shell.run("import links.txt")
      #expect(second.output == ["GitHub: alice  already there", "Steam: me  already there"])
      #expect(try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault")) == before)
      try Data("secret words\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/password"))
      var other = shell
      for (number, words) in [
        "--to aegis --password-file password out", "--to aegis --plain out", "--to 2fas --password-file password out",
        "--to otpauth --plain out",
      ].enumerated() {
        let name = "out\(number)"
        let written = try await shell.run("export " + words.replacing(" out", with: " " + name))
        #expect(written.code == 0 && written.output == ["\(name)  2 entries, opened again"], "\(written)")
        let mode = try FileManager.default.attributesOfItem(atPath: shell.folder + "/" + name)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        other.vault = "other\(number)"
        try other.makeVault([])
        #expect(try await other.run("import \(name) --password-file password").code == 0)
        #expect(try await other.run("list --json").output == shell.run("list --json").output)
      }
      #expect(try await shell.run("export --to aegis --plain out0").code == 73)
      #expect(try await shell.run("export --to google out9").code == 64)
      let google = try await shell.run("export --to google --plain out9")
      #expect(google.code == 1 && google.errors[0].contains("Steam: me"), "\(google)")
      #expect(try await shell.run("import out9").output == ["GitHub: alice  already there"])
      let wrong = try await shell.run("import out0 --password-file passphrase")
      #expect(wrong.code == 77 && wrong.errors[0].contains("wrong password"), "\(wrong)")
      #expect(try await shell.run("import passphrase").code == 65)
      #expect(try await shell.run("import none").code == 66)
      let display = "%7B%22note%22%3A%22n%22%2C%22tags%22%3A%5B%22a%22%2C%22b%22%5D%7D"
      let ente = "otpauth://totp/Ente:bob?secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U&issuer=Ente&codeDisplay=\(display)\n"
      try Data(ente.utf8).write(to: URL(fileURLWithPath: shell.folder + "/ente.txt"))
      #expect(try await shell.run("import ente.txt").code == 0)
      for (format, name) in [("2fas", "out10"), ("otpauth", "out11")] {
        let incomplete = try await shell.run("export --to \(format) --plain \(name)")
        let warning = "warning: Ente: bob: \(format) does not keep: note, groups"
        #expect(incomplete.code == 0 && incomplete.errors.contains(warning), "\(incomplete)")
      }
      let whole = try await shell.run("export --to aegis --plain out12")
      #expect(whole.code == 0 && !whole.errors.contains { $0.contains("does not keep") }, "\(whole)")
    }
  }

  @Test(
    "D-062 D-061 bad input is refused with its reason, and nothing is written",
    arguments: [
      ("otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&digits=99", "digits=99"),
      ("otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&period=0", "period=0"),
      ("otpauth://totp/a?secret=JBSWY3DPEHPK3PXP&algorithm=md5", "algorithm=md5"),
      ("otpauth://totp/a?secret=JBSWY3DPEHPK3PX1", "0, 1, 8 and 9"), ("otpauth://totp/a", "no parameters"),
      ("JBSWY3DPEHPK3PX\u{DF}", "ß"), ("J=BSWY3D", "Base32"), ("A", "digits of Base32"), ("", "empty"),
    ])
  func badInput(_ input: String, _ reason: String) async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let before = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault"))
      let result = try await shell.run("add name", input: input + "\n")
      #expect(result.code == 65 && result.errors[0].contains(reason), "\(result)")
      #expect(!result.errors.joined().contains("JBSWY3"))
      #expect(try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault")) == before)
    }
  }

  @Test("T-33 a short secret is accepted with a warning, and the options of a new entry are checked")
  func options() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      for options in ["--type motp", "--algorithm md5", "--digits 11", "--period 0", "--period 301"] {
        #expect(try await shell.run("add a " + options, input: Shell.secret).code == 64, "\(options)")
      }
      for options in ["--counter 5", "--type steam --counter 5", "--type hotp --period 60"] {
        let run = try await shell.run("add a " + options, input: Shell.secret)
        #expect(run.code == 64 && run.errors[0].contains("codes of --type"), "\(options): \(run)")
      }
      let link = "otpauth://hotp/Bank:bob?secret=\(Shell.secret)&counter=1"
      for options in ["--counter 900", "--type hotp", "--algorithm SHA256", "--digits 6", "--period 60"] {
        let run = try await shell.run("add " + options, input: link)
        #expect(run.code == 64 && run.errors[0].contains("says how codes are made"), "\(options): \(run)")
      }
      #expect(try await shell.run("list").output.isEmpty)
      #expect(try await shell.run("add", input: Shell.secret).code == 64)
      let weak = try await shell.run("add Steam:me --type steam", input: "JBSWY3DPEHPK3PXP")
      #expect(weak.code == 0 && weak.errors[0].contains("has 80 bits"), "\(weak)")
      #expect(try await shell.run("code me").output[0].count == 5)
    }
  }

  @Test("T-38 a wrong passphrase, damage, a later version and a vault that is gone have their own sentences")
  func faults() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let place = URL(fileURLWithPath: shell.vaultPath + "/vault")
      let good = try Data(contentsOf: place)
      #expect(try await shell.run("edit alice --note x").code == 0)
      let wrong = shell.folder + "/wrong"
      try Data("wrong\n".utf8).write(to: URL(fileURLWithPath: wrong))
      let refused = try await shell.run("code alice --passphrase-file", wrong)
      #expect(refused.code == 77 && refused.errors[0].contains("wrong passphrase"))
      try Data("\n".utf8).write(to: URL(fileURLWithPath: wrong))
      let empty = try await shell.run("code alice --passphrase-file", wrong)
      #expect(empty.code == 64 && empty.errors == ["error: the first line of \(wrong) is empty"], "\(empty)")
      var flipped = good
      flipped[good.count / 2] ^= 1
      for (bytes, sentence) in [
        (flipped, "damaged"), (good.prefix(100), "damaged"),
        (
          Data(String(decoding: good, as: UTF8.self).replacing("\"version\":1", with: "\"version\":7").utf8),
          "version 7"
        ),
      ] {
        try bytes.write(to: place)
        let result = try await shell.run("rm alice")
        #expect(result.code == 65 && result.errors[0].contains(sentence), "\(result)")
        #expect(try Data(contentsOf: place) == bytes)
        let check = try await shell.run("check")
        #expect(check.code == 1 && check.errors.last?.contains("can be opened") == true, "\(check)")
      }
      try FileManager.default.removeItem(at: place)
      let gone = try await shell.run("add other", input: Shell.secret)
      #expect(gone.code == 66 && gone.errors[0].contains("is gone"), "\(gone)")
    }
  }

  @Test func `without a terminal and a file there is no passphrase, and the reason is told`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      let run = try await ChildProcess.run(
        try Places.tool("setsid"), ["-w", try Places.product("authenticator"), "code", "alice"],
        environment: shell.environment.merging(["AUTHENTICATOR_PASSPHRASE_FILE": nil]) { $1 })
      #expect(run.exit == .code(66) && run.errors[0].contains("no terminal") && run.errors[1].contains("unlock"))
    }
  }

  @Test func `the ten last versions are kept, and each can be opened`() async throws {
    try await withShell { shell in
      let key = try shell.makeVault([alice])
      for number in 0..<13 { try await shell.run("edit alice --note", "\(number)") }
      let versions = try FileManager.default.contentsOfDirectory(atPath: shell.vaultPath + "/versions").sorted()
      #expect(versions.count == 10)
      let notes = try versions.map { name in
        let bytes = try Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/versions/" + name))
        return try VaultFile(bytes: bytes).vault(key: key).entries[0].note
      }
      #expect(notes == (2..<12).map(String.init))
      let check = try await shell.run("check")
      #expect(check.code == 0 && check.output.filter { $0.hasPrefix("version ") }.count == 10, "\(check)")
      let last = URL(fileURLWithPath: shell.vaultPath + "/versions/" + versions[9])
      let good = try Data(contentsOf: last)
      try good.dropLast(40).write(to: last)
      let cut = try await shell.run("check")
      #expect(cut.code == 1 && cut.output.filter { $0.hasPrefix("problem ") }.count == 1, "\(cut)")
      #expect(cut.output.contains { $0.hasPrefix("problem ") && $0.contains(versions[9]) }, "\(cut)")
      #expect(cut.errors.last?.contains("remove the versions") == true, "\(cut)")
      try good.write(to: last)
      chmod(shell.vaultPath + "/vault", 0o644)
      let open = try await shell.run("check")
      #expect(open.code == 1 && open.output.contains { $0.contains("others can open") }, "\(open)")
    }
  }

  @Test func `a new passphrase opens the vault, and the old one does not`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      try Data("other words\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/new"))
      #expect(try await shell.run("passphrase --new-passphrase-file new").output == ["passphrase changed"])
      #expect(try await shell.run("code alice").code == 77)
      #expect(try await shell.run("code alice --passphrase-file new").code == 0)
      try Data("\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/empty"))
      let empty = try await shell.run("passphrase --passphrase-file new --new-passphrase-file empty")
      #expect(empty.code == 64 && empty.errors[0].contains("is empty"))
    }
  }

  @Test func `unlock keeps the vault open for its time and no longer`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice])
      // A session keyring of its own, which ends with the script.
      let script = """
        A="$0"
        "$A" unlock --for 2s || exit 9
        unset AUTHENTICATOR_PASSPHRASE_FILE
        "$A" code alice || exit 8
        sleep 2.2
        setsid -w "$A" code alice 2>/dev/null && exit 7
        AUTHENTICATOR_PASSPHRASE_FILE=passphrase "$A" unlock --for 8h
        "$A" code alice && "$A" lock && setsid -w "$A" code alice 2>/dev/null || exit 0
        exit 6
        """
      let run = try await ChildProcess.run(
        try Places.tool("keyctl"), ["session", "-", "/bin/sh", "-c", script, try Places.product("authenticator")],
        environment: shell.environment, in: shell.folder)
      #expect(run.exit == .code(0), "\(run)")
      for time in ["0s", "25h", "1d", "x", "99999999999999999999s"] {
        #expect(try await shell.run("unlock --for \(time)").code == 64)
      }
    }
  }

  @Test func `sync carries entries, removals and passphrases, and merges conflict copies`() async throws {
    try await withShell { shell in
      var laptop = shell
      laptop.vault = "laptop"
      try shell.makeVault([alice])
      let folder = shell.folder + "/shared"
      #expect(try await shell.run("sync none/shared").code == 66)
      #expect(try await shell.run("sync shared").output == ["sent changes"])
      #expect(try await laptop.run("sync shared").output == ["received changes"])
      #expect(try await laptop.run("list").output.count == 1)
      // Both change; one is kept as a conflict copy.
      try await laptop.run("add Bank:bob", input: "MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U")
      try await laptop.run("sync shared")
      try FileManager.default.moveItem(
        atPath: folder + "/authenticator.vault",
        toPath: folder + "/authenticator.sync-conflict-20261124-080001-ABCDEF7.vault")
      try await shell.run("rm alice")
      #expect(
        try await shell.run("sync shared").output
          == ["received and sent changes; 1 conflict copies merged and removed"])
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["authenticator.vault"])
      #expect(try await laptop.run("sync shared").output == ["received changes"])
      #expect(try await laptop.run("list").output.count == 1)
      #expect(
        try await laptop.run("sync shared --json").output == [#"{"left":[],"merged":[],"received":false,"sent":false}"#]
      )
      // A new passphrase follows.
      try Data("other words\n".utf8).write(to: URL(fileURLWithPath: shell.folder + "/new"))
      try await shell.run("passphrase --new-passphrase-file new")
      #expect(try await shell.run("sync shared --passphrase-file new").output == ["sent changes"])
      try await laptop.run("sync shared")
      #expect(try await laptop.run("list --passphrase-file new").output.count == 1)
      // A vault of another key is not touched.
      var other = shell
      other.vault = "other"
      try other.makeVault([bank])
      let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/authenticator.vault"))
      let refused = try await other.run("sync shared")
      #expect(refused.code == 65 && refused.errors[1].contains("--join"), "\(refused)")
      let mute = try await ChildProcess.run(
        try Places.tool("setsid"), ["-w", try Places.product("authenticator"), "sync", "--join", folder],
        environment: other.environment)
      #expect(mute.exit == .code(66) && mute.errors[1].contains("run this on a terminal"), "\(mute)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/authenticator.vault")) == before)
    }
  }

  @Test func `processes that change the vault at the same time lose nothing`() async throws {
    try await withShell { shell in
      try shell.makeVault([bank])
      let codes = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<8 { group.addTask { try await shell.run("code bank").output[0] } }
        return try await group.reduce(into: Set<String>()) { $0.insert($1) }
      }
      #expect(codes.count == 8)
    }
  }
}
