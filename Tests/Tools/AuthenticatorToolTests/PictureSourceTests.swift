import AuthenticatorVault
import Foundation
import Glibc
import QRCodes
import QREncoding
import TestSupport
import Testing

@testable import authenticator

private let link = "otpauth://totp/Mail:bob?secret=MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U&issuer=Mail"

@Suite("Codes on the screen and of a camera", .timeLimit(.minutes(3)))
struct PictureSourceTests {
  /// A shell with a picture of a code, and with `script` as the programs that make pictures of the screen.
  private func withScreen(
    _ script: String, _ body: (Shell, [String: String?]) async throws -> Void
  ) async throws {
    try await withShell { shell in
      try shell.makeVault([])
      try Data(try QRCode(link).png()).write(to: URL(fileURLWithPath: shell.folder + "/code.png"))
      let folder = shell.folder + "/bin"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      for name in ["grim", "import"] {
        let text = "#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$0 $*\" >>\(shell.folder)/calls\n\(script)\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
        chmod(folder + "/" + name, 0o755)
      }
      try await body(shell, ["PATH": folder])
    }
  }

  @Test(
    "A picture of the screen is read from the program of its desktop",
    arguments: [("WAYLAND_DISPLAY", "grim -"), ("DISPLAY", "import -window root png:-")])
  func screen(_ variable: String, _ call: String) async throws {
    try await withScreen("cat \"$(dirname \"$0\")/../code.png\"") { shell, path in
      let run = try await shell.run("scan --screen", environment: path.merging([variable: "x"]) { $1 })
      #expect(run.code == 0 && run.output == ["Mail: bob  added"], "\(run)")
      let calls = try String(contentsOfFile: shell.folder + "/calls", encoding: .utf8).split(separator: "\n")
      #expect(calls.count == 1 && calls[0].hasSuffix("/" + call), "\(calls)")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: shell.folder).sorted() == [
          "bin", "calls", "code.png", "passphrase", "vault",
        ])
    }
  }

  @Test("No desktop, and a program that makes no picture, are refused", arguments: ["exit 1", "echo text", "exit 0"])
  func noScreen(_ script: String) async throws {
    try await withScreen(script) { shell, path in
      for more in [[:], ["WAYLAND_DISPLAY": "x", "DISPLAY": ":9"]] as [[String: String?]] {
        let run = try await shell.run("scan --screen", environment: path.merging(more) { $1 })
        #expect(run.code == 69 && run.errors.joined().contains("install grim"), "\(run)")
      }
    }
  }

  @Test func `a command gives a picture or the texts of codes, and no shell reads it`() async throws {
    try await withScreen("") { shell, _ in
      let picture = try await shell.run("scan --command", "/bin/cat code.png")
      #expect(picture.code == 0 && picture.output == ["Mail: bob  added"], "\(picture)")
      let text = try await shell.run("scan code.png --command", "/usr/bin/printf '%s\\n' '\(link)' https://a.example/x")
      #expect(text.code == 0 && text.output == Array(repeating: "Mail: bob  already there", count: 2), "\(text)")
      #expect(text.errors.contains { $0.contains("passed by: https://a.example") }, "\(text)")
      let shellText = try await shell.run("scan --command", "/bin/echo $(touch made); touch made")
      #expect(shellText.code == 65 && !FileManager.default.fileExists(atPath: shell.folder + "/made"), "\(shellText)")
    }
  }

  @Test func `a command that fails is named with what to do`() async throws {
    try await withScreen("") { shell, _ in
      for (command, code, words) in [
        ("", 64, "names no program"), ("'open", 64, "left open"), ("\"\"", 64, "names no program"),
        ("/none/such x", 66, "cannot be started"), ("/bin/false", 65, "exited with 1"),
        ("/bin/sh -c 'kill -9 $$'", 65, "ended by signal 9"), ("/bin/true", 65, "neither a picture"),
        ("/usr/bin/head -c 2000000 /dev/zero", 65, "neither a picture"),
        ("/usr/bin/printf '\\211PNG'", 65, "neither a PNG"), ("/usr/bin/printf '\\377'", 65, "neither a picture"),
      ] {
        let run = try await shell.run("scan --command", command)
        #expect(run.code == Int32(code) && run.errors.joined().contains(words), "\(command): \(run)")
      }
      #expect(try await shell.run("scan").code == 64)
    }
  }

  @Test func `a command that never ends, or writes without end, is killed`() throws {
    let start = ContinuousClock.now
    for command in [["/bin/sleep", "600"], ["/bin/cat", "/dev/zero"]] {
      #expect {
        try PictureSource(seconds: 1).texts(of: command)
      } throws: { error in
        "\(error)".contains("was killed")
      }
    }
    #expect(ContinuousClock.now - start < .seconds(60))
  }

  @Test(
    "Words are divided at spaces, and quotation marks keep them together",
    arguments: [
      ("a b", ["a", "b"]), ("  a\tb ", ["a", "b"]), ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
      (#"a b\ c \'d"#, ["a", "b c", "'d"]), (#"a '' "x\"y" 'x\y'"#, ["a", "", #"x"y"#, #"x\y"#]),
      ("a $b `c` *", ["a", "$b", "`c`", "*"]), ("a'b'c", ["abc"]),
    ])
  func words(_ text: String, _ expected: [String]) throws {
    #expect(try CommandWords.split(text) == expected)
  }
}
