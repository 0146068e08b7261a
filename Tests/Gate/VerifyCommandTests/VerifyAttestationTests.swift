import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
import TestSupport
import Testing

@Suite("sallyport verify attestation")
struct VerifyAttestationTests {
  static let steps = [
    "format", "certificate_chain", "nonce", "key_id", "rp_id", "counter", "environment", "credential_id",
    "credential_key", "extensions", "receipt_format", "receipt_certificate_chain", "receipt_signature",
    "receipt_app_id", "receipt_public_key", "receipt_client_data_hash", "receipt_environment", "receipt_expiry",
  ]

  @Test(
    "A valid attestation exits 0, names every step, and prints nothing on standard error",
    arguments: SimulatedEnvironment.allCases)
  func valid(_ environment: SimulatedEnvironment) throws {
    let (shell, fixtures) = (try Shell(), try Fixtures(environment: environment))
    let file = try shell.file("object.bin", fixtures.attestation)
    let flags = try fixtures.attestationFlags(in: shell)
    let transcript = try shell.verify(["attestation", file, "--json"] + flags)
    #expect(transcript.status == 0)
    #expect(transcript.errors.isEmpty)
    let report = try transcript.report()
    #expect(report.kind == "attestation" && report.holds)
    #expect(report.steps.map(\.name) == Self.steps)
    #expect(report.steps.allSatisfy { $0.result == "holds" && !$0.detail.isEmpty })
    #expect(report.fields.environment == environment.rawValue)
    #expect(report.fields.public_key == fixtures.publicKey)
    #expect(report.at == Fixtures.instant.description)

    let text = try shell.verify(["attestation", file] + flags)
    #expect(text.status == 0)
    #expect(text.output.hasPrefix("the attestation holds at 2027-01-15T08:00:00Z\n"))
    for step in Self.steps { #expect(text.output.contains("\nok       \(step) ")) }
  }

  @Test("The file may be binary, base64, base64 in lines, or standard input")
  func readsEveryForm() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let base64 = Base64.encode(fixtures.attestation)
    let lines = stride(from: 0, to: base64.utf8.count, by: 64).map { String(base64.dropFirst($0).prefix(64)) }
    let forms = [fixtures.attestation, Array(base64.utf8), Array(lines.joined(separator: "\r\n").utf8) + [0x0A]]
    for form in forms {
      let flags = try fixtures.attestationFlags(in: shell)
      #expect(try shell.verify(["attestation", shell.file("object", form)] + flags).status == 0)
      #expect(try shell.verify(["attestation", "-"] + flags, input: form).status == 0)
    }
  }

  @Test("A hash of 0 to 64 bytes is accepted; Apple's own sample has 24", arguments: [0, 24, 32, 64])
  func acceptsHashes(_ count: Int) throws {
    let (shell, fixtures) = (try Shell(), try Fixtures(hash: Array(repeating: 5, count: count)))
    let transcript = try shell.verify(
      ["attestation", "-"] + fixtures.attestationFlags(in: shell), input: fixtures.attestation)
    #expect(transcript.status == 0)
  }

  @Test("Each failed step exits 1 and is named on standard output and standard error")
  func invalid() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let flags = try fixtures.attestationFlags(in: shell)
    let cases: [(flag: String, value: String, broken: [String])] = [
      ("--app-id", "AAABBBCCC1.com.example.app", ["rp_id", "receipt_app_id"]),
      ("--key-id", Base64.encode(SHA256.hash([])), ["key_id", "credential_id"]),
      ("--client-data-hash", "00", ["nonce", "receipt_client_data_hash"]),
      ("--at", "2027-01-18T08:00:01Z", ["certificate_chain"]),
      ("--at", "2027-01-13T07:59:59Z", ["certificate_chain", "receipt_certificate_chain"]),
    ]
    for (flag, value, broken) in cases {
      var changed = flags
      changed[try #require(flags.firstIndex(of: flag)) + 1] = value
      let transcript = try shell.verify(["attestation", "-", "--json"] + changed, input: fixtures.attestation)
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == broken, "\(flag) \(value)")
      #expect(try !transcript.report().holds)
      #expect(transcript.errorLines.count == 2)
      #expect(transcript.errorLines.first?.hasPrefix("error: the attestation is not valid: \(broken[0]): ") == true)
      #expect(transcript.errorLines.last?.hasPrefix("hint: ") == true)
    }
  }

  @Test("If only the time does not hold, the hint names the time at which every rule passes")
  func hintOfTime() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let attested = Fixtures.instant.description
    func hint(_ kind: String, at time: String, _ flag: String? = nil, _ value: String = "") throws -> String {
      var flags = kind == "receipt" ? try fixtures.receiptFlags(in: shell) : try fixtures.attestationFlags(in: shell)
      flags[try #require(flags.firstIndex(of: "--at")) + 1] = time
      if let flag { flags[try #require(flags.firstIndex(of: flag)) + 1] = value }
      let transcript = try shell.verify(
        [kind, "-"] + flags, input: kind == "receipt" ? fixtures.receipt : fixtures.attestation)
      #expect(transcript.status == 1)
      return String(try #require(transcript.errorLines.last))
    }
    for (kind, time) in [
      ("attestation", "2027-01-18T08:00:01Z"), ("attestation", "2027-01-13T07:59:59Z"),
      ("receipt", "2037-01-18T08:00:01Z"), ("receipt", "2017-01-13T07:59:59Z"),
    ] {
      // The receipt in an attestation is made a fifth of a second after the certificate.
      let created = kind == "attestation" ? attested.dropLast() + ".200Z" : attested
      let text = try hint(kind, at: time)
      #expect(text.hasPrefix("hint: only the time does not hold: every rule passes at \(created)"), "\(text)")
      #expect(text.contains("--at \(created)") && text.contains("clock"), "\(text)")
    }
    // Another rule is broken as well, so the time is no explanation.
    let other = try hint("attestation", at: "2027-01-18T08:00:01Z", "--app-id", "AAABBBCCC1.com.example.app")
    #expect(!other.contains("only the time"), "\(other)")
    let key = try hint("receipt", at: "2037-01-18T08:00:01Z", "--app-id", "AAABBBCCC1.com.example.app")
    #expect(!key.contains("only the time"), "\(key)")
    #expect(try !hint("attestation", at: attested, "--client-data-hash", "00").contains("only the time"))
  }

  @Test("Without the simulated roots no object of a simulated device is valid")
  func trustsOnlyApple() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let flags = try fixtures.attestationFlags(in: shell).prefix(8)
    let transcript = try shell.verify(["attestation", "-", "--json"] + flags, input: fixtures.attestation)
    #expect(transcript.status == 1)
    #expect(try transcript.report().broken == ["certificate_chain", "receipt_certificate_chain"])
  }

  @Test("Malformed content exits 1 and is reported as a format error")
  func reportsMalformed() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    let real = fixtures.attestation
    let contents: [[UInt8]] = [
      [], [0], Array("no attestation".utf8), Array("QUJD".utf8), real.dropLast(), real + [0],
      Array(repeating: 0x61, count: 3 << 20), Array(repeating: 0x80, count: 3 << 20), fixtures.assertion,
    ]
    for content in contents {
      let transcript = try shell.verify(
        ["attestation", "-", "--json"] + fixtures.attestationFlags(in: shell), input: content)
      #expect(transcript.status == 1)
      let report = try transcript.report()
      #expect(report.broken == ["format"])
      #expect(report.steps.map(\.name) == Self.steps)
      #expect(report.steps.dropFirst().allSatisfy { $0.result == "not_checked" })
    }
  }

  @Test("A malformed receipt is reported, and the object's format is valid")
  func reportsMalformedReceipt() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    var mint = AttestationMint(authority: fixtures.authority, app: SimulatedApp(appID: Fixtures.appID))
    mint.alterations.statement = { $0.receipt = [0x30, 0x00] }
    let object = try mint.attestation(of: fixtures.key, clientDataHash: fixtures.hash, at: Fixtures.instant)
    let transcript = try shell.verify(
      ["attestation", "-", "--json"] + fixtures.attestationFlags(in: shell), input: object)
    #expect(transcript.status == 1)
    #expect(try transcript.report().broken == ["receipt_format"])
    #expect(try transcript.report().steps.first?.result == "holds")
  }

  @Test("For an unknown environment all other fields of the receipt are compared")
  func comparesReceiptWithoutEnvironment() throws {
    let (shell, fixtures) = (try Shell(), try Fixtures())
    var mint = AttestationMint(authority: fixtures.authority, app: SimulatedApp(appID: Fixtures.appID))
    mint.alterations.authenticatorData = { $0.credential?.aaguid[0] ^= 1 }
    func report() throws -> Report {
      let object = try mint.attestation(of: fixtures.key, clientDataHash: fixtures.hash, at: Fixtures.instant)
      return try shell.verify(
        ["attestation", "-", "--json"] + fixtures.attestationFlags(in: shell), input: object
      ).report()
    }
    let unknownEnvironment = try report()
    #expect(unknownEnvironment.broken == ["environment"])
    #expect(unknownEnvironment.steps.filter { $0.result == "not_checked" }.map(\.name) == ["receipt_environment"])

    mint.alterations.receipt = { $0[4] = SHA256.hash([]) }
    #expect(try report().broken == ["environment", "receipt_client_data_hash"])
  }
}

@Suite("sallyport verify: nonces, registrations and headers")
struct VerifyContentTests {
  private static let nonce = [UInt8](0..<32)

  /// A device that signs `hash`; the right one is the SHA-256 of the nonce.
  private static func fixtures(_ hash: [UInt8] = SHA256.hash(nonce)) throws -> Fixtures { try Fixtures(hash: hash) }

  private static func body(_ fixtures: Fixtures, keyID: String? = nil, more: String = "") -> [UInt8] {
    let attestation = Base64.encode(fixtures.attestation)
    return Array(
      #"{"keyId":"\#(keyID ?? fixtures.keyID)","attestation":"\#(attestation)","nonce":"\#(Hex.encode(nonce))"\#(more)}"#
        .utf8)
  }

  /// The flags of `verify attestation` without those that a registration has.
  private static func flags(_ fixtures: Fixtures, in shell: Shell) throws -> [String] {
    let flags = try fixtures.attestationFlags(in: shell)
    return Array(flags[..<2] + flags[6...])
  }

  @Test("The nonce of the option is hashed, for attestations and assertions")
  func nonceOption() throws {
    let (shell, fixtures) = (try Shell(), try Self.fixtures())
    let flags = try Self.flags(fixtures, in: shell)
    let nonce = ["--nonce", Hex.encode(Self.nonce)]
    let attestation = try shell.verify(
      ["attestation", "-", "--key-id", fixtures.keyID] + nonce + flags, input: fixtures.attestation)
    #expect(attestation.status == 0, "\(attestation)")
    let assertion = try shell.verify(
      ["assertion", "-", "--app-id", Fixtures.appID, "--public-key", fixtures.publicKey, "--counter", "0"] + nonce,
      input: fixtures.assertion)
    #expect(assertion.status == 0, "\(assertion)")
    let both = try shell.verify(["assertion", "-"] + fixtures.assertionFlags(counter: 0) + nonce)
    #expect(both.status == 64 && both.errorLines.first?.contains("exclude each other") == true, "\(both)")
    for text in ["", "0", "zz", String(repeating: "00", count: 65)] {
      let refused = try shell.verify(["attestation", "-", "--key-id", fixtures.keyID, "--nonce", text] + flags)
      #expect(refused.status == 64 && refused.errorLines.first?.contains("a nonce is") == true, "\(refused)")
    }
    let none = try shell.verify(["attestation", "-", "--key-id", fixtures.keyID] + flags, input: fixtures.attestation)
    #expect(none.status == 64 && none.errorLines.last?.hasPrefix("hint: add --nonce") == true, "\(none)")
  }

  @Test("The body of a registration has the key identifier and the nonce; options override them")
  func registration() throws {
    let (shell, fixtures) = (try Shell(), try Self.fixtures())
    let flags = try Self.flags(fixtures, in: shell)
    let plain = try shell.verify(["attestation", "-"] + flags, input: Self.body(fixtures))
    #expect(plain.status == 0, "\(plain)")
    let spaced = try shell.verify(
      ["attestation", "-"] + flags, input: Array("\n ".utf8) + Self.body(fixtures, more: #", "more": [1]"#))
    #expect(spaced.status == 0, "\(spaced)")
    let other = try shell.verify(
      ["attestation", "-", "--nonce", String(repeating: "00", count: 32)] + flags, input: Self.body(fixtures))
    #expect(other.status == 1, "\(other)")
    for (body, text) in [
      (Self.body(fixtures, keyID: "AAAA"), "keyId is not the base64 of 32 bytes"),
      (Array(#"{"keyId":"\#(fixtures.keyID)","attestation":"QUJD"}"#.utf8), "nonce is missing"),
      (Array(#"{"attestation":"?","keyId":"","nonce":""}"#.utf8), "attestation is not base64"),
    ] {
      let refused = try shell.verify(["attestation", "-"] + flags, input: body)
      #expect(refused.status == 65 && refused.errorLines.first == "error: -: \(text)", "\(refused)")
      #expect(refused.errorLines.last?.hasPrefix("hint: ") == true && refused.output.isEmpty)
    }
    let android = try shell.verify(
      ["attestation", "-"] + flags, input: Array(#"{"platform":"android","chain":[],"nonce":""}"#.utf8))
    #expect(android.status == 65 && android.errorLines.last?.contains("sallyport verify android") == true, "\(android)")
    let mistaken = try shell.verify(
      ["assertion", "-"] + fixtures.assertionFlags(counter: 0), input: Self.body(fixtures))
    #expect(mistaken.status == 65 && mistaken.errorLines.last?.contains("sallyport verify attestation") == true)
  }

  @Test("The headers of an assertion are read as text and as JSON; a foreign key identifier is named")
  func headers() throws {
    let (shell, fixtures) = (try Shell(), try Self.fixtures())
    let flags = ["--app-id", Fixtures.appID, "--public-key", fixtures.publicKey, "--counter", "0"]
    func fields(_ keyID: String) -> [(String, String)] {
      [
        ("X-App-Assert-KeyId", keyID), ("X-App-Assert-Data", Base64.encode(fixtures.assertion)),
        ("X-App-Assert-Nonce", Hex.encode(Self.nonce)),
      ]
    }
    func text(_ keyID: String) -> String { fields(keyID).map { "\($0): \($1)\r\n" }.joined() }
    let json = "{" + fields(fixtures.keyID).map { "\"\($0)\": \"\($1)\"" }.joined(separator: ",") + "}"
    for form in [text(fixtures.keyID), "GET / HTTP/1.1\n" + text(fixtures.keyID).lowercasedNames, json] {
      let read = try shell.verify(["assertion", "-", "--json"] + flags, input: Array(form.utf8))
      #expect(read.status == 0, "\(form) \(read)")
      #expect(try read.report().steps.map(\.name).contains("key_id"))
    }
    let foreign = try shell.verify(
      ["assertion", "-", "--json"] + flags, input: Array(text(Base64.encode(SHA256.hash([]))).utf8))
    #expect(foreign.status == 1)
    #expect(try foreign.report().broken == ["key_id"])
    let mistaken = try shell.verify(
      ["attestation", "-"] + Self.flags(fixtures, in: shell), input: Array(text(fixtures.keyID).utf8))
    #expect(mistaken.status == 65 && mistaken.errorLines.last?.contains("sallyport verify assertion") == true)
  }

  @Test(
    "File, key identifier and public key may be in any form of base64 that the gate accepts",
    arguments: OtherBase64.allCases)
  func otherBase64(_ form: OtherBase64) throws {
    let (shell, fixtures) = (try Shell(), try Self.fixtures())
    let flags = try Self.flags(fixtures, in: shell)
    let keyID = form.text(fixtures.keyID)
    let base64 = Base64.encode(fixtures.attestation)
    func body(_ keyID: String, _ attestation: String) -> [UInt8] {
      let values = [keyID, attestation].map { $0.replacing("\n", with: "\\n") }
      return Array(
        #"{"keyId":"\#(values[0])","attestation":"\#(values[1])","nonce":"\#(Hex.encode(Self.nonce))"}"#.utf8)
    }
    let object = try shell.verify(
      ["attestation", "-", "--key-id=\(keyID)", "--nonce", Hex.encode(Self.nonce)] + flags,
      input: Array(form.text(base64).utf8))
    #expect(object.status == 0, "\(object)")
    let registration = try shell.verify(["attestation", "-"] + flags, input: body(keyID, form.text(base64)))
    #expect(registration.status == 0, "\(registration)")
    let assertion = try shell.verify(
      [
        "assertion", "-", "--app-id", Fixtures.appID, "--public-key", form.text(fixtures.publicKey), "--counter", "0",
        "--nonce", Hex.encode(Self.nonce),
      ], input: Array(form.text(Base64.encode(fixtures.assertion)).utf8))
    #expect(assertion.status == 0, "\(assertion)")

    let mixed = try #require(OtherBase64.mixed(base64))
    let refused = try shell.verify(["attestation", "-"] + flags, input: body(keyID, mixed))
    #expect(refused.status == 65 && refused.errorLines.first == "error: -: attestation is not base64", "\(refused)")
    let file = try shell.verify(
      ["attestation", "-", "--json", "--key-id=\(keyID)", "--nonce", Hex.encode(Self.nonce)] + flags,
      input: Array(mixed.utf8))
    #expect(file.status == 1)
    #expect(try file.report().broken == ["format"])
  }

  @Test("A changed byte of the authenticator data and another client data hash are told apart")
  func differingPart() throws {
    let (shell, fixtures) = (try Shell(), try Self.fixtures())
    let flags = try fixtures.attestationFlags(in: shell)
    func detail(_ flags: [String], _ object: [UInt8]) throws -> String {
      let report = try shell.verify(["attestation", "-", "--json"] + flags, input: object).report()
      return try #require(report.steps.first { $0.name == "nonce" && $0.result == "broken" }).detail
    }
    // A flag in the authenticator data, on its way.
    let hash = try #require(AppID(Fixtures.appID)).hash
    let start = try #require(fixtures.attestation.firstRange(of: hash)).upperBound
    var changed = fixtures.attestation
    changed[start] ^= 0x04
    #expect(
      try detail(flags, changed).hasSuffix(
        ": the authenticator data was changed; the receipt names this client data hash"))
    var other = flags
    other[5] = Hex.encode(SHA256.hash([9]))
    #expect(
      try detail(other, fixtures.attestation).hasSuffix(
        ": the client data hash \(Hex.encode(fixtures.hash)) was attested; the authenticator data is unchanged"))
    #expect(
      try detail(other, changed).hasSuffix(
        ": the authenticator data was changed, and the receipt names the client data hash \(Hex.encode(fixtures.hash))")
    )
    // A receipt of nobody decides nothing.
    #expect(
      try detail(Array(flags.prefix(8)), changed).hasSuffix(
        ": another client data hash was attested, or the authenticator data was changed"))
  }

  @Test("A hash that the device made of the nonce by mistake is named")
  func mistakes() throws {
    let digits = Array(Hex.encode(Self.nonce).utf8)
    for (hash, text) in [
      (Self.nonce, "the nonce itself, not its SHA-256"),
      (SHA256.hash(digits), "the SHA-256 of the nonce's hex digits, not of its bytes"),
      (SHA256.hash(Array(Base64.encode(Self.nonce).utf8)), "the SHA-256 of the nonce in base64, not of its bytes"),
    ] {
      let (shell, fixtures) = (try Shell(), try Self.fixtures(hash))
      let hint = "hint: the device signed \(text): use the SHA-256 of the nonce's 32 bytes"
      let attestation = try shell.verify(
        ["attestation", "-"] + Self.flags(fixtures, in: shell), input: Self.body(fixtures))
      #expect(attestation.status == 1 && attestation.errorLines.last.map(String.init) == hint, "\(attestation)")
      let assertion = try shell.verify(
        [
          "assertion", "-", "--app-id", Fixtures.appID, "--public-key", fixtures.publicKey, "--counter", "0", "--nonce",
          Hex.encode(Self.nonce),
        ], input: fixtures.assertion)
      #expect(assertion.status == 1 && assertion.errorLines.last.map(String.init) == hint, "\(assertion)")
    }
  }
}

extension String {
  /// The header lines with their names in lower case.
  fileprivate var lowercasedNames: String {
    split(separator: "\r\n").map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return parts[0].lowercased() + ":" + parts[1] + "\n"
    }.joined()
  }
}
