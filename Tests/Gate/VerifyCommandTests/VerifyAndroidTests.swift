import ByteCoding
import Cryptography
import SimulatedDevice
import TestSupport
import Testing

@Suite("sallyport verify android")
struct VerifyAndroidTests {
  static let steps = [
    "format", "name_chaining", "signatures", "root", "authorities", "validity", "revocation", "attestation_extension",
    "key_description", "challenge", "security_level", "origin", "purpose", "boot", "patch_level", "app", "key",
    "provisioning",
  ]

  /// The flags with which a minted chain is valid.
  private static func flags(_ mint: AndroidMint, in shell: Shell) throws -> [String] {
    [
      "--package", AndroidMint.package, "--signer", Hex.encode(AndroidMint.signer), "--challenge",
      Base64.encode(AndroidMint.challenge), "--at", AndroidMint.instant.description, "--root",
      try shell.file("android-root.pem", mint.rootPEM()),
    ]
  }

  private static func array(_ chain: [[UInt8]]) -> String {
    "[" + chain.map { "\"\(Base64.encode($0))\"" }.joined(separator: ",\n") + "]\n"
  }

  @Test("A valid chain exits 0, names every step, and prints nothing on standard error", arguments: [false, true])
  func valid(_ isRemote: Bool) throws {
    let (shell, mint) = (try Shell(), isRemote ? try AndroidMint.remote() : try .factory())
    let list = try shell.file("status.json", #"{"entries":{"abc":{"status":"REVOKED"}}}"#)
    let flags = try Self.flags(mint, in: shell) + ["--status-list", list] + (isRemote ? ["--require-rkp"] : [])
    let transcript = try shell.verify(["android", shell.file("chain.pem", mint.pem()), "--json"] + flags)
    #expect(transcript.status == 0)
    #expect(transcript.errors.isEmpty)
    let report = try transcript.report()
    #expect(report.kind == "chain" && report.holds)
    #expect(report.steps.map(\.name) == Self.steps)
    let unchecked = report.steps.filter { $0.result == "not_checked" }.map(\.name)
    #expect(unchecked == ["patch_level"] + (isRemote ? [] : ["provisioning"]))
    #expect(report.steps.allSatisfy { $0.result != "broken" && !$0.detail.isEmpty })
    #expect(report.fields.public_key == Base64.encode(mint.key.x963))

    let text = try shell.verify(["android", "-"] + flags, input: Array(Self.array(mint.chain()).utf8))
    #expect(text.status == 0)
    #expect(text.output.hasPrefix("the chain holds at 2026-05-28T20:26:40Z\n"))
    for step in Self.steps {
      #expect(text.output.contains("\n\(unchecked.contains(step) ? "-      " : "ok     ")  \(step) "))
    }
    for field in [
      "hardwareEnforced.rootOfTrust.verifiedBootState  ", "softwareEnforced.attestationApplicationId.packages[0].name ",
    ] {
      #expect(text.output.contains("\n\(field)"))
    }
  }

  @Test(
    "The body of a registration is recognized, with its nonce; an option overrules it, and a broken body is refused")
  func registration() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let all = try Self.flags(mint, in: shell)
    let place = try #require(all.firstIndex(of: "--challenge"))
    let flags = Array(all[..<place] + all[(place + 2)...])
    func body(_ nonce: String, platform: String = #""platform":"android","#) throws -> [UInt8] {
      Array("{\(platform)\"chain\":\(try Self.array(mint.chain())),\"nonce\":\"\(nonce)\"}".utf8)
    }
    let own = Hex.encode(AndroidMint.challenge)
    let other = String(repeating: "00", count: 32)
    #expect(try shell.verify(["android", "-"] + flags, input: body(own)).status == 0)
    let broken = try shell.verify(["android", "-", "--json"] + flags, input: body(other))
    #expect(try broken.status != 0 && broken.report().broken == ["challenge_differs"], "\(broken)")
    #expect(try shell.verify(["android", "-"] + all, input: body(other)).status == 0)
    for (content, fault) in [
      (try body("00"), "nonce is not 64 hex digits"),
      (try body(String(repeating: "AB", count: 32)), "nonce is not 64 hex digits"),
      (Array(try body(own).dropLast()), "refuses as JSON"), ([0xEF, 0xBB, 0xBF] + (try body(own)), "refuses as JSON"),
      (Array(try body(own).dropLast() + #","nonce":"00"}"#.utf8), "refuses as JSON"),
      (try body(other, platform: ""), "platform is missing"),
      (Array(#"{"keyId":"a","attestation":"b","nonce":"c"}"#.utf8), "not the body of an Android"),
    ] {
      let refused = try shell.verify(["android", "-"] + flags, input: content)
      #expect(refused.status == 65 && refused.errors.contains(fault), "\(refused.errors)")
    }
    let unknown = try shell.verify(["android", "-"] + flags, input: Array(Self.array(mint.chain()).utf8))
    #expect(unknown.status == 64 && unknown.errors.contains("the nonce is not known"))
  }

  @Test("Without a status list revocation is not checked; with one that has a certificate the chain is not valid")
  func revocation() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let (flags, chain) = (try Self.flags(mint, in: shell), Array(try mint.pem().utf8))
    let unchecked = try shell.verify(["android", "-", "--json"] + flags, input: chain)
    #expect(unchecked.status == 0)
    #expect(
      try unchecked.report().steps.filter { $0.result == "not_checked" }.map(\.name) == [
        "revocation", "patch_level", "provisioning",
      ])
    let serial = Hex.encode(mint.certificates[1].serialNumber)
    let list = try shell.file(
      "status.json", #"{"entries":{"\#(serial)":{"status":"REVOKED","reason":"KEY_COMPROMISE"}}}"#)
    let revoked = try shell.verify(["android", "-", "--json", "--status-list", list] + flags, input: chain)
    #expect(revoked.status == 1)
    #expect(try revoked.report().broken == ["revoked[1]"])
  }

  @Test("All rules that fail are listed on standard output, and the first one on standard error")
  func invalid() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let (flags, chain) = (try Self.flags(mint, in: shell), Array(try mint.pem().utf8))
    let cases: [(flag: String, value: String, broken: [String])] = [
      ("--package", "com.example.other", ["package_differs"]),
      ("--signer", String(repeating: "00", count: 32), ["signer_differs"]),
      ("--challenge", "", ["challenge_differs"]),
      ("--at", "2015-01-01T00:00:00Z", ["not_yet_valid[1]", "not_yet_valid[2]"]),
      ("--root", try shell.file("other.pem", AndroidMint.factory().rootPEM()), ["root_unknown"]),
    ]
    for (flag, value, broken) in cases {
      var changed = flags
      changed[try #require(flags.firstIndex(of: flag)) + 1] = value
      let transcript = try shell.verify(["android", "-", "--json"] + changed, input: chain)
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == broken, "\(flag) \(value)")
      #expect(transcript.errorLines.count == 2)
      #expect(transcript.errorLines.first?.hasPrefix("error: the chain is not valid: \(broken[0]): ") == true)
      #expect(transcript.errorLines.last?.hasPrefix("hint: ") == true)
    }
    let factory = try shell.verify(["android", "-", "--json", "--require-rkp"] + flags, input: chain)
    #expect(factory.status == 1)
    #expect(try factory.report().broken == ["not_remotely_provisioned"])

    var several = mint
    several.description.hardware[704] = MintedKeyDescription.rootOfTrust(locked: 0, state: 2)
    let unlocked = try shell.verify(["android", "-"] + flags, input: Array(several.pem().utf8))
    #expect(unlocked.status == 1)
    #expect(unlocked.output.hasPrefix("the chain does not hold at "))
    #expect(unlocked.output.contains("\nBROKEN   device_unlocked "))
    #expect(unlocked.output.contains("\nBROKEN   boot_unverified "))
  }

  @Test("Systems of other keys are accepted with a file of boot keys")
  func bootKeys() throws {
    let (shell, key) = (try Shell(), [UInt8](repeating: 0xC0, count: 32))
    var mint = try AndroidMint.factory()
    mint.description.hardware[704] = MintedKeyDescription.rootOfTrust(key: key, state: 1)
    let (flags, chain) = (try Self.flags(mint, in: shell), Array(try mint.pem().utf8))
    let refused = try shell.verify(["android", "-", "--json"] + flags, input: chain)
    #expect(try refused.report().broken == ["boot_selfsigned"])
    for content in [Hex.encode(key) + "\n", #"{"verifiedBootKeys":["\#(Hex.encode(key))"]}"#] {
      let file = try shell.file("boot-keys", content)
      #expect(try shell.verify(["android", "-", "--boot-keys", file] + flags, input: chain).status == 0)
    }
  }

  @Test("Malformed content exits 1 and is named")
  func malformed() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let (flags, chain) = (try Self.flags(mint, in: shell), try mint.chain())
    let contents: [(content: String, code: String)] = [
      ("", "malformed_chain"), ("no chain", "malformed_chain"), ("[", "malformed_chain"), ("[1]", "malformed_chain"),
      ("[]", "chain_length"), (Self.array([chain[0]]), "chain_length"),
      (Self.array(Array(repeating: chain[0], count: 50)), "chain_length"),
      ("[\"A*\", \"!\"]", "malformed_certificate[0]"), (Self.array([[], chain[1]]), "malformed_certificate[0]"),
      (Self.array([chain[0], chain[1].dropLast()]), "malformed_certificate[1]"),
      (String(repeating: "a", count: 3 << 20), "chain_size"),
    ]
    for (content, code) in contents {
      let transcript = try shell.verify(["android", "-", "--json"] + flags, input: Array(content.utf8))
      #expect(transcript.status == 1)
      let report = try transcript.report()
      #expect(report.broken.first == code, "\(content.prefix(20))")
      #expect(report.steps.filter { $0.result != "broken" }.allSatisfy { $0.result == "not_checked" })
    }
  }

  @Test("An invalid command line exits 64 with an error and a hint, and prints nothing")
  func usage() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let flags = try Self.flags(mint, in: shell)
    func replacing(_ flag: String, by value: String) -> [String] {
      var changed = flags
      if let index = flags.firstIndex(of: flag) { changed[index + 1] = value }
      return changed
    }
    func removing(_ flag: String) -> [String] {
      guard let index = flags.firstIndex(of: flag) else { return flags }
      return Array(flags[..<index] + flags[(index + 2)...])
    }
    let empty = try shell.file("empty.json", "{}")
    let lines =
      ["--package", "--challenge"].map(removing)
      + ["", String(repeating: "a", count: 256)].map { replacing("--package", by: $0) }
      + ["", "00", String(repeating: "0g", count: 32)].map { replacing("--signer", by: $0) }
      + ["A", "AA===", "+-+-", "not base64"].map { replacing("--challenge", by: $0) }
      + ["now", "2026-04-21"].map { replacing("--at", by: $0) }
      + [
        replacing("--root", by: empty), flags + ["--status-list", empty], flags + ["--boot-keys", empty],
        flags + ["--bogus"], flags + ["--security-level", "software"], flags + ["--min-patch-level", "2026-13"],
      ]
    for line in lines {
      let transcript = try shell.verify(["android", "-"] + line)
      #expect(transcript.status == 64, "\(line)")
      #expect(transcript.output.isEmpty)
      #expect(transcript.errorLines.first?.hasPrefix("error: ") == true)
      #expect(transcript.errorLines.last?.hasPrefix("hint: ") == true)
    }
    for line in [["no such file"] + flags, ["-", "--status-list", "no such file"] + flags] {
      #expect(try shell.verify(["android"] + line).status == 66)
    }
    // No app is accepted without a signer.
    let unsigned = try shell.verify(["android", "-"] + removing("--signer"), input: Array(mint.pem().utf8))
    #expect(unsigned.status == 1 && unsigned.output.contains("signer_differs"))
    // The Play Console writes digests with colons.
    let digest = AndroidMint.signer.map { Hex.encode([$0]).uppercased() }.joined(separator: ":")
    #expect(
      try shell.verify(["android", "-"] + replacing("--signer", by: digest), input: Array(mint.pem().utf8)).status == 0)
  }

  @Test(
    "What other programs write is read: base64 in lines, a byte order mark, challenges of URLs, packages of one word")
  func lenientInput() throws {
    let (shell, mint) = (try Shell(), try AndroidMint.factory())
    let flags = try Self.flags(mint, in: shell)
    let lines = try mint.chain().map { der in
      let text = Base64.encode(der)
      return "\"" + text.prefix(76) + "\\n" + text.dropFirst(76) + "\\n\""
    }
    let json = Array("\u{FEFF}[\(lines.joined(separator: ",\r\n"))]".utf8)
    #expect(try shell.verify(["android", "-"] + flags, input: json).status == 0)
    let index = try #require(flags.firstIndex(of: "--challenge"))
    let challenge = Base64.encode(AndroidMint.challenge)
    for challenge in [challenge] + OtherBase64.allCases.map({ $0.text(challenge) }) {
      var changed = flags
      changed[index + 1] = challenge
      #expect(try shell.verify(["android", "-"] + changed, input: json).status == 0)
    }
    let word = try shell.verify(["android", "-"] + flags + ["--package", "android"], input: json)
    #expect(word.status == 1 && word.output.contains("package_differs"))
    let list = try shell.file("none.json", #"{"entries": {}}"#)
    #expect(try shell.verify(["android", "-"] + flags + ["--status-list", list], input: json).status == 0)
    let tee = try shell.verify(
      ["android", "-"] + flags + ["--security-level", "strongbox", "--min-patch-level", "2099-01"], input: json)
    #expect(tee.status == 1)
    for code in ["security_level_too_low", "patch_level_too_old"] { #expect(tee.output.contains(code)) }
  }
}
