import AuthenticatorVault
import ByteCoding
import Foundation
import OneTimePasswords
import Testing

@testable import VaultFormats

private func read(_ text: String, as format: VaultFormat? = nil) throws -> ImportedFile {
  try VaultReader.read(Array(text.utf8), as: format, at: 7) { "" }
}

private func entry(
  _ issuer: String, kind: VaultEntry.Kind = .totp(period: 30), algorithm: TOTPAlgorithm = .sha1, digits: Int = 6,
  note: String = "", tags: [String] = []
) -> VaultEntry {
  VaultEntry(
    issuer: issuer, account: "a", secret: Array("the secret of \(issuer.prefix(20))".utf8), kind: kind,
    algorithm: algorithm, digits: digits, note: note, tags: tags, at: 7)
}

private let good = entry("Good")
private let writable = [VaultFormat.aegis, .twoFAS, .google, .otpauth]

@Suite("What a file can carry", .timeLimit(.minutes(3)))
struct CarriedTests {
  @Test("An entry that a file cannot carry is named, and the others are there", arguments: writable)
  func unfit(_ format: VaultFormat) throws {
    let deep = (0..<70).reduce(JSONValue.null) { value, _ in .array([value]) }
    var kept = entry("Deep", kind: .other("motp"))
    kept.otherFields = ["aegis": .object(["x": deep])]
    let unfit = [
      entry(String(repeating: "n", count: 4097)), entry("Note", note: String(repeating: "\u{E4}", count: 17_000)),
      entry("Marks", note: String(repeating: "\u{1}", count: 16_000)),
      entry("Groups", tags: (0..<33).map { "group \($0)" }), kept,
    ]
    let written = try VaultWriter.write([good] + unfit, as: format, password: nil, at: 9)
    // The others have no notes, and one group.
    let expected = unfit.filter { format == .aegis || !["Note", "Marks", "Groups"].contains($0.issuer) }.map(\.name)
    #expect(Set(written.faults.map(\.place)) == Set(expected), "\(written.faults.map(\.reason))")
    let again = try VaultReader.read(written.bytes, at: 7) { "" }
    #expect(again.faults.isEmpty && again.entries.map(\.issuer).contains("Good"))
    #expect(again.entries.count + expected.count == unfit.count + 1)
  }

  @Test(
    "Steam's codes with the parameters of others are written as Steam has them",
    arguments: [VaultFormat.aegis, .twoFAS, .otpauth])
  func steam(_ format: VaultFormat) throws {
    let steam = entry("Steam", kind: .steam, algorithm: .sha256, digits: 6)
    let written = try VaultWriter.write([steam, good], as: format, password: nil, at: 9)
    let again = try VaultReader.read(written.bytes, at: 7) { "" }
    #expect(written.faults.isEmpty && again.faults.isEmpty)
    #expect(again.entries.map(\.id) == [steam.id, good.id])
  }

  @Test("An entry with an identifier of another program is carried", arguments: writable)
  func identifiers(_ format: VaultFormat) throws {
    let token = #"{"id":"other","created":1,"account":"a","issuer":"A","secret":"GEZDGNBVGY3TQOJQ"}"#
    let json = #"{"tokens":[\#(token)],"version":1}"#
    let entries = try Vault(json: Data(json.utf8)).entries
    let written = try VaultWriter.write(entries, as: format, password: nil, at: 9)
    let again = try VaultReader.read(written.bytes, at: 7) { "" }
    #expect(written.faults.isEmpty && again.entries.map(\.id) == entries.map(\.codesID))
  }

  @Test(
    "2FAS for iOS has three lengths and four periods, and other entries are named",
    arguments: [(30, 5), (30, 9), (30, 10), (15, 6), (45, 6), (300, 8)])
  func twoFAS(_ period: Int, _ digits: Int) throws {
    let unfit = entry("Other", kind: .totp(period: period), digits: digits)
    let fit = [10, 30, 60, 90].flatMap { period in
      [6, 7, 8].map { entry("\(period) \($0)", kind: .totp(period: period), digits: $0) }
    }
    let written = try VaultWriter.write([unfit] + fit, as: .twoFAS, password: nil, at: 9)
    #expect(written.faults.map(\.place) == ["Other: a"])
    #expect(written.faults.first?.reason.contains("2FAS for iOS") == true)
    #expect(try VaultReader.read(written.bytes, at: 7) { "" }.entries.map(EntryLook.removed) == fit)
  }

  @Test("Migration links of 5,001 to 10,000 entries are read again", arguments: [5001, 10_000])
  func manyLinks(_ count: Int) throws {
    let entries = (0..<count).map { entry("\($0)") }
    let written = try VaultWriter.write(entries, as: .google, password: nil, at: 9)
    let again = try VaultReader.read(written.bytes, at: 7) { "" }
    #expect(written.faults.isEmpty && again.faults.isEmpty && again.missingParts.isEmpty)
    #expect(again.entries == entries)
  }

  @Test func `long names make shorter migration links, and a secret that fits into none is named`() throws {
    let long = (0..<20).map { number in
      VaultEntry(
        issuer: String(repeating: "i", count: 4000) + "\(number)", account: String(repeating: "?", count: 4000),
        secret: Array("secret \(number)".utf8), at: 7)
    }
    let secret = VaultEntry(issuer: "Secret", account: "", secret: Array(repeating: 0xFF, count: 50_000), at: 7)
    let written = try VaultWriter.write(long + [secret, good], as: .google, password: nil, at: 9)
    #expect(written.faults.map(\.place) == ["Secret"])
    let lines = written.bytes.split(separator: UInt8(ascii: "\n"))
    #expect(lines.count > 3 && lines.allSatisfy { $0.count <= 65_536 })
    let again = try VaultReader.read(written.bytes, at: 7) { "" }
    #expect(again.faults.isEmpty && again.missingParts.isEmpty && again.entries == long + [good])
  }

  @Test func `a text that is too long comes in from no link and no file`() throws {
    let name = String(repeating: "n", count: 4097)
    let note = String(repeating: "n", count: 16_385)
    for (text, part) in [
      ("otpauth://totp/\(name):a?secret=GEZDGNBVGY3TQOJQ", "issuer"),
      ("otpauth://totp/A:\(name)?secret=GEZDGNBVGY3TQOJQ", "account"),
      ("otpauth://totp/A:a?secret=GEZDGNBVGY3TQOJQ&codeDisplay=%7B%22tags%22%3A%5B%22\(name)%22%5D%7D", "group"),
      (#"{"entries":[{"content":{"uri":"GEZDGNBVGY3TQOJQ","name":"A"},"note":"\#(note)"}]}"#, "note"),
      (#"{"items":[{"name":"\#(name)","login":{"totp":"steam://GEZDGNBVGY3TQOJQ"}}]}"#, "issuer"),
    ] {
      let file = try read(text)
      #expect(file.entries.isEmpty && file.faults.count == 1, "\(part)")
      #expect(file.faults.first?.reason.contains(part) == true, "\(file.faults)")
    }
    #expect(throws: EntryLink.Fault.self) { try EntryLink.entry("otpauth://totp/A:\(name)?secret=GEZDGNBV", at: 1) }
  }
}

@Suite("What a file means", .timeLimit(.minutes(3)))
struct MeaningTests {
  @Test(
    "The issuer of 2FAS is the name that its owner gave, and that of the link only without one",
    arguments: [
      ("My work", "GitHub", "My work"), ("", "GitHub", "GitHub"), (" ", "GitHub", "GitHub"), ("My work", "", "My work"),
    ])
  func names(_ name: String, _ issuer: String, _ expected: String) throws {
    let text = #"{"services":[{"name":"\#(name)","secret":"GEZDGNBV","otp":{"account":"a","issuer":"\#(issuer)"}}]}"#
    #expect(try read(text).entries.map(\.issuer) == [expected])
    let faulty = text.replacing("GEZDGNBV", with: "1")
    #expect(try read(faulty).faults.map(\.place) == ["entry 1 (\(expected): a)"])
  }

  @Test func `a link of Steam without its slashes is a fault of its line`() throws {
    let file = try read(
      """
      steam://GEZDGNBVGY3TQOJQ
      steam:GEZDGNBVGY3TQOJQAB
      steam:/GEZDGNBVGY3TQOJQA
      STEAM://GEZDGNBVGY3TQOJR
      """)
    #expect(file.entries.map { Base32.encode($0.secret) } == ["GEZDGNBVGY3TQOJQ", "GEZDGNBVGY3TQOJR"])
    #expect(file.faults.map(\.place) == ["line 2", "line 3"])
    #expect(file.faults.allSatisfy { $0.reason.contains("steam://") && !$0.reason.contains("GEZD") })
  }

  @Test(
    "A list of other objects with secrets is not read as one of andOTP",
    arguments: [
      #"[{"name":"GitHub","secret":"GEZDGNBVGY3TQOJQ","hash":"SHA256","length":8,"interval":60}]"#,
      #"[{"secret":"GEZDGNBVGY3TQOJQ","digits":6}]"#, #"[{"type":"TOTP","secret":"GEZDGNBVGY3TQOJQ"}]"#,
      #"[{"secret":"GEZDGNBVGY3TQOJQ","algo":"SHA1","period":60}]"#,
    ])
  func foreignLists(_ text: String) throws {
    #expect(throws: VaultFormatError.unknownFormat) { try read(text) }
  }

  @Test(
    "An object with a member twice is malformed, however its name is written",
    arguments: [
      #"{"services":[{"secret":"GEZDGNBV","secret":"MFRGGZDF"}]}"#,
      #"{"services":[{"secret":"GEZDGNBV","\u0073ecret":"MFRGGZDF"}]}"#,
      #"{"services":[{"secret":"GEZDGNBV","otp":{"digits":6,"period":30,"digits":8}}]}"#,
      #"{"services":[],"services":[{"secret":"GEZDGNBV"}]}"#,
    ])
  func repeatedNames(_ text: String) throws {
    #expect(throws: VaultFormatError.malformed(.twoFAS)) { try read(text) }
  }

  @Test func `a member of each object, and a text that is no name, may be the same`() throws {
    let text = #"""
      {"services":[{"name":"a\"b","secret":"GEZDGNBV","x":["secret","secret",{"x":1}],"\n":1,"n":2,"\/":{"secret":1}},
      {"name":"secret","secret":"MFRGGZDF"}]}
      """#
    #expect(try read(text).entries.map(\.issuer) == [#"a"b"#, "secret"])
  }
}
