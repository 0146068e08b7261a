import AuthenticatorVault
import Foundation
import OneTimePasswords
import QRCodes
import QREncoding
import TestSupport
import Testing

private let links = [
  "otpauth://steam/Steam:sophia?secret=JRZCL47CMXVOQMNPZR2F7J4RGI&issuer=Steam",
  "otpauth://totp/ctl:test?secret=NETNB4PVCAHOULUUPNY53KYURRLXLCUM&issuer=Steam&digits=5",
  "otpauth://totp/ACME%20Co:john?secret=HXDMVJECJJWSRB3HWIZR4IFUGFTMXBOZ&issuer=ACME+Co&digits=null",
  "otpauth://totp/Tail:a?secret=S46SQCPPTCNPROMHWYBDCTBZXV", "otpauth://hotp/Bank:a?secret=MFRGGZDFMZTWQ2LKNNWG23TP",
  "otpauth://totp/Five:a?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&digits=5", "steam://JRZCL47CMXVOQMNPZR2F7J4RGA",
]

@Suite("authenticator and what the world sends", .timeLimit(.minutes(5)))
struct WorldCommandTests {
  @Test("import, scan and add read the same links", arguments: links)
  func oneReader(_ link: String) async throws {
    try await withShell { shell in
      try Data((link + "\n").utf8).write(to: URL(fileURLWithPath: shell.folder + "/link.txt"))
      try Data(try QRCode(link).png()).write(to: URL(fileURLWithPath: shell.folder + "/link.png"))
      var lists: [[String]] = []
      for (vault, words) in [("import", "import link.txt"), ("scan", "scan link.png"), ("add", "add")] {
        var other = shell
        other.vault = vault
        try other.makeVault([])
        let run = try await other.run(words, input: link + "\n")
        #expect(run.code == 0 && run.output.count == 1, "\(run)")
        lists.append(try await other.run("list --json").output)
        // It goes out and comes in again.
        #expect(try await other.run("export --to otpauth --plain \(vault).out").code == 0)
        let again = try await other.run("import \(vault).out")
        #expect(again.code == 0 && again.output.allSatisfy { $0.hasSuffix("already there") }, "\(again)")
      }
      #expect(lists[0] == lists[1] && lists[1] == lists[2], "\(lists)")
    }
  }

  @Test func `five digits are computed`() async throws {
    try await withShell { shell in
      try shell.makeVault([
        VaultEntry(
          issuer: "Five", account: "a", secret: Array("12345678901234567890".utf8), kind: .hotp, digits: 5, at: 1)
      ])
      #expect(try await shell.run("code Five").output == ["55224"])
    }
  }

  @Test func `two accounts with one secret are named, and a repetition of one is not`() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      let secret = "secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U"
      try Data(
        "otpauth://totp/One:a?\(secret)\notpauth://totp/Two:b?\(secret)\n".utf8
      ).write(to: URL(fileURLWithPath: shell.folder + "/two.txt"))
      try Data(
        "otpauth://totp/One:a?\(secret)\notpauth://totp/One:a?\(secret)\n".utf8
      ).write(to: URL(fileURLWithPath: shell.folder + "/one.txt"))
      for words in ["import two.txt --dry-run", "import two.txt", "import two.txt"] {
        let run = try await shell.run(words)
        #expect(run.code == 65 && run.output.last == "Two: b  already there as One: a", "\(run)")
        #expect(run.errors.contains { $0.contains("Two: b: it has the secret") }, "\(run)")
        #expect(run.errors.contains { $0.contains("1 of 2 could not be imported") }, "\(run)")
      }
      #expect(try await shell.run("import one.txt").code == 0)
      #expect(try await shell.run("edit One --issuer Other").code == 0)
      #expect(try await shell.run("import one.txt").code == 0)
    }
  }

  @Test func `codes of a store are passed by, with no more of them than the host`() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      let script = """
        import segno, sys
        from PIL import Image, ImageOps
        link, store = sys.argv[1:3]
        def code(text): segno.make(text, error="M", micro=False).save("c.png", scale=5); return Image.open("c.png").convert("L")
        a, b = code(link), code(store)
        for name, parts in (("above", (b, a)), ("below", (a, b))):
            page = Image.new("L", (800, 1000), 255)
            page.paste(parts[0], (20, 20)); page.paste(parts[1], (20, 500)); page.save(name + ".png")
        inverted = ImageOps.invert(a); inverted.save("inverted.png")
        page = Image.new("L", (1600, 500), 255); page.paste(inverted, (20, 20)); page.paste(b, (900, 20)); page.save("mixed.png")
        clear = Image.new("RGBA", a.size, (0, 0, 0, 0))
        white = Image.new("RGBA", a.size, (255, 255, 255, 255))
        clear.paste(white, (0, 0), ImageOps.invert(a)); clear.save("white.png")
        light = Image.new("RGBA", a.size, (0, 0, 0, 0)); light.paste(white, (0, 0), a); light.save("light.png")
        """
      let link = "otpauth://totp/Example:alice?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Example"
      let drawn = try await ChildProcess.run(
        "/usr/bin/python3", ["-c", script, link, "https://play.example.com/store?id=secret"], in: shell.folder)
      try #require(drawn.exit == .code(0), "\(drawn.errors)")
      for name in ["above", "below", "mixed"] {
        let run = try await shell.run("scan \(name).png")
        #expect(run.code == 0 && run.output.count == 1, "\(name): \(run)")
        let warnings = run.errors.filter { $0.contains("passed by: https://play.example.com") }
        #expect(warnings.count == 1 && !run.errors.joined().contains("id=secret"), "\(name): \(run)")
      }
      for name in ["inverted", "white", "light"] {
        let run = try await shell.run("scan \(name).png")
        #expect(run.code == 0 && run.output == ["Example: alice  already there"], "\(name): \(run)")
      }
      // One useless code of two does not keep the other out.
      var other = shell
      other.vault = "other"
      try other.makeVault([])
      let faulty = "otpauth://totp/Bad:b?secret=GEZDGNBV1"
      let pair = try await ChildProcess.run("/usr/bin/python3", ["-c", script, link, faulty], in: shell.folder)
      try #require(pair.exit == .code(0), "\(pair.errors)")
      let run = try await other.run("scan above.png")
      #expect(run.code == 65 && run.output == ["Example: alice  added"], "\(run)")
    }
  }

  @Test(
    "The pictures and the last instant of reports are read",
    .enabled(if: SharedWorld.has("qr"), "\(SharedWorld.absence("qr"))"))
  func reports() async throws {
    try await withShell { shell in
      try shell.makeVault([])
      let folder = SharedWorld.path("qr")
      for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".png") {
        let run = try await shell.run("scan", folder + "/" + name)
        #expect(run.code == 0 && run.output.count == 1, "\(name): \(run)")
      }
      let names = try await shell.run("list").output
      #expect(names.count == 4 && names.contains { $0.contains("ACME Co: john") }, "\(names)")
      let last = SharedWorld.path("authenticator/2fas_last_instant.2fas")
      #expect(try await shell.run("import", last).code == 0)
      #expect(try await shell.run("rm A: B:").code == 0)
      #expect(try await shell.run("restore A:").code == 0)
      #expect(try await shell.run("check").code == 0)
    }
  }
}
