import ByteCoding
import Cryptography
import Testing

@Suite("sallyport verify with invalid command lines")
struct VerifyUsageTests {
  private static let app = ["--app-id", "AAABBBCCC1.com.example.app"]
  private static let keyID = ["--key-id", "2o0syRGn1HDKDv85d522XBC9nLqrHWHGnt/mJ5hWMQM="]
  private static let hash = ["--client-data-hash", "00"]
  private static let publicKey = [
    "--public-key",
    "BLqK+9/4UD0ZwmKwKtnRtFQjVrmTPv8Upbby6NIFm1X/jm7mnsOI/OTgfugeMAs3EhSb0ErTVjLUZGxXn5pADQs=",
  ]
  private static let attestation = ["attestation", "-"] + app + keyID + hash
  private static let assertion = ["assertion", "-"] + app + publicKey + hash + ["--counter", "0"]
  private static let receipt = ["receipt", "-"] + app + publicKey

  private static func replacing(_ flag: String, in line: [String], by value: String) -> [String] {
    var changed = line
    if let index = line.firstIndex(of: flag) { changed[index + 1] = value }
    return changed
  }

  private static func removing(_ flag: String, from line: [String]) -> [String] {
    guard let index = line.firstIndex(of: flag) else { return line }
    return Array(line[..<index] + line[(index + 2)...])
  }

  /// Each line has one error.
  static let invalid: [[String]] =
    [["bogus"], ["attestation"], ["assertion"], ["receipt"]]
    + [attestation + ["--bogus"], attestation + ["second"], attestation + ["--at"]]
    + ["--app-id", "--key-id", "--client-data-hash"].map { removing($0, from: attestation) }
    + ["--app-id", "--public-key", "--client-data-hash", "--counter"].map { removing($0, from: assertion) }
    + ["--app-id", "--public-key"].map { removing($0, from: receipt) }
    + ["", "com.example.app", "AAABBBCCC1", "AAABBBCCC1.", "aaabbbccc1.com.example.app", "AAABBBCCC1.com example"].map {
      replacing("--app-id", in: attestation, by: $0)
    }
    + ["", "AAAA", "-o0syRGn1HDKDv85d522XBC9nLqrHWHGnt/mJ5hWMQM=", "not base64"].map {
      replacing("--key-id", in: attestation, by: $0)
    }
    + ["0", "0g", String(repeating: "00", count: 65)].map { replacing("--client-data-hash", in: attestation, by: $0) }
    + ["", "BLqK", publicKey[1].replacing("+", with: "-"), Base64.encode([4] + [UInt8](repeating: 1, count: 64))].map {
      replacing("--public-key", in: receipt, by: $0)
    }
    + ["", "-1", "4294967296", "one"].map { replacing("--counter", in: assertion, by: $0) }
    + ["now", "2026-04-21", "2026-04-21T18:13:12", "1700000000"].map { receipt + ["--at", $0] }

  @Test("An invalid command line exits 64 with an error and a hint, and prints nothing", arguments: invalid)
  func exits64(_ arguments: [String]) throws {
    let transcript = try Shell().verify(arguments)
    #expect(transcript.status == 64)
    #expect(transcript.output.isEmpty)
    #expect(transcript.errorLines.first?.hasPrefix("error: ") == true)
    #expect(transcript.errorLines.last?.hasPrefix("hint: ") == true)
  }

  @Test(
    "An error describes the expected form of a refused value",
    arguments: [
      (replacing("--app-id", in: attestation, by: "app"), "an app ID is"),
      (replacing("--key-id", in: attestation, by: "AAAA"), "a key id is the base64 of 32 bytes"),
      (replacing("--client-data-hash", in: attestation, by: "0"), "a hash is 0 to 64 bytes in hex"),
      (replacing("--public-key", in: receipt, by: "BLqK"), "these 3 bytes are not a point on P-256"),
      (receipt + ["--at", "now"], "a time is a date"),
    ])
  func reportsReason(_ arguments: [String], _ reason: String) throws {
    #expect(try Shell().verify(arguments).errorLines.first?.contains(reason) == true)
  }

  @Test(
    "A correct command line exits 1 for empty content, so the cases above fail only because of their errors",
    arguments: [attestation, assertion, receipt])
  func acceptsCorrectLines(_ arguments: [String]) throws {
    #expect(try Shell().verify(arguments).status == 1)
  }

  @Test(
    "An unreadable file exits 66 with an error and a hint", arguments: ["attestation", "assertion", "receipt"])
  func exits66(_ kind: String) throws {
    let shell = try Shell()
    let line = try #require([Self.attestation, Self.assertion, Self.receipt].first { $0[0] == kind })
    for path in [shell.path, shell.path + "/absent"] {
      let transcript = try shell.verify([kind, path] + line.dropFirst(2))
      #expect(transcript.status == 66)
      #expect(transcript.output.isEmpty)
      #expect(transcript.errorLines.first?.hasPrefix("error: \(path): ") == true)
      #expect(transcript.errorLines.last?.hasPrefix("hint: ") == true)
    }
  }

  @Test("Long content is not truncated: its last bytes are verified", arguments: [attestation, assertion, receipt])
  func refusesLong(_ line: [String]) throws {
    let shell = try Shell()
    let padding = String(repeating: " ", count: 1 << 20)
    for end in ["", "!"] {
      let file = try shell.file("long", "QUJD" + padding + end)
      let transcript = try shell.verify([line[0], file, "--json"] + line.dropFirst(2))
      #expect(transcript.status == 1)
      #expect(try transcript.report().broken == ["format"])
    }
    guard line[0] != "assertion" else { return }  // An assertion is verified with a key, without a root.
    #expect(try shell.verify(line + ["--root", shell.file("root.pem", padding + "!")]).status == 65)
  }

  @Test("An unreadable root exits 66, and one that is not a certificate exits 64")
  func refusesRoots() throws {
    let shell = try Shell()
    #expect(try shell.verify(Self.receipt + ["--root", shell.path + "/absent"]).status == 66)
    for content in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
      #expect(try shell.verify(Self.receipt + ["--root", shell.file("root.pem", content)]).status == 64)
    }
  }

  @Test("Help shows an example and exits 0", arguments: [[], ["attestation"], ["assertion"], ["receipt"]])
  func helps(_ command: [String]) throws {
    let transcript = try Shell().verify(command + ["--help"])
    #expect(transcript.status == 0)
    #expect(transcript.output.contains("  sallyport verify \(command.first ?? "attestation") "))
    #expect(transcript.errors.isEmpty)
  }
}
