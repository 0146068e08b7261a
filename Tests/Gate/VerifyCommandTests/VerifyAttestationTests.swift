import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice
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
