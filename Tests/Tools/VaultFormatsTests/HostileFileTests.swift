import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing
import VaultFormats

private func read(_ text: String, as format: VaultFormat? = nil, at time: Int64 = 500) throws -> ImportedFile {
  try VaultReader.read(Array(text.utf8), as: format, at: time) { "" }
}

/// A link of Google Authenticator's export with one entry, written without the program's own code.
private func migrationLink(name: String, issuer: String = "", parts: Int = 1, export: Int = 1) -> String {
  func number(_ value: Int) -> [UInt8] {
    value < 128 ? [UInt8(value)] : [UInt8(value & 127 | 128)] + number(value >> 7)
  }
  func bytes(_ field: Int, _ content: [UInt8]) -> [UInt8] { number(field << 3 | 2) + number(content.count) + content }
  let entry = bytes(1, Array("secret".utf8)) + bytes(2, Array(name.utf8)) + bytes(3, Array(issuer.utf8))
  let content = bytes(1, entry) + number(3 << 3) + number(parts) + number(5 << 3) + number(export)
  let base64 = Data(content).base64EncodedString().replacingOccurrences(of: "+", with: "%2B")
  return "otpauth-migration://offline?data=\(base64)"
}

@Suite("Files that strangers made", .timeLimit(.minutes(3)))
struct HostileFileTests {
  @Test(
    "The time of a file has no part in its entries: an import is an act of now",
    arguments: ["9223372036854775807", "-9223372036854775808", "0", "50"])
  func times(_ time: String) throws {
    let text = """
      {"services":[{"name":"A","secret":"GEZDGNBV","updatedAt":\(time),"otp":{"account":"a"}}],"schemaVersion":4}
      """
    let file = try read(text)
    #expect(file.entries.map(\.createdAt) == [500] && file.entries.map(\.updatedAt) == [500])
  }

  @Test(
    "Numbers at both ends of what JSON has are refused by their entry, and trap nothing",
    arguments: ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e999", "-1", "0.5"])
  func numbers(_ number: String) throws {
    let files = [
      """
      {"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"entries":[{"type":"hotp","name":"a",
      "issuer":"A","info":{"secret":"GEZDGNBV","counter":\(number),"digits":\(number),"period":\(number)}}]}}
      """,
      #"{"services":[{"secret":"GEZDGNBV","otp":{"digits":\#(number),"period":\#(number),"counter":\#(number)}}]}"#,
      #"[{"type":"TOTP","secret":"GEZDGNBV","digits":\#(number),"period":\#(number),"counter":\#(number)}]"#,
      #"[{"algo":"SHA1","type":"TOTP","secret":"GEZDGNBV","digits":\#(number),"period":\#(number),"counter":\#(number)}]"#,
      #"{"tokens":[{"secret":[\#(number)],"digits":\#(number),"period":\#(number),"counter":\#(number)}]}"#,
      #"{"Authenticators":[{"Type":\#(number),"Secret":"GEZDGNBV","Algorithm":\#(number),"Digits":\#(number)}]}"#,
    ]
    for text in files {
      if let file = try? read(text) { #expect(file.entries.isEmpty && file.faults.count <= 1, "\(text)") }
    }
  }

  @Test func `values that are nested deeper than any app writes are refused before they are made`() throws {
    for depth in [60, 490] {
      let value = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      let text = """
        {"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"entries":[
        {"type":"motp","name":"a","info":{"secret":"GEZDGNBV","x":\(value)}}]}}
        """
      #expect(throws: VaultFormatError.self) { try read(text) }
    }
    let quoted = #"{"services":[{"name":"\#(String(repeating: "[", count: 500))","secret":"GEZDGNBV"}]}"#
    #expect(try read(quoted).entries.count == 1)
  }

  @Test(
    "A list of more values than its entries need is refused before they are made",
    arguments: [
      ("{\"services\":[", "0", "]}"), ("[{\"secret\":\"\",\"type\":\"\",\"label\":\"\"},", "{}", "]"),
      ("{\"tokens\":[", "{}", "]}"), ("{\"items\":[", "0", "]}"),
      ("{\"header\":{\"slots\":null,\"params\":null},\"db\":{\"version\":3,\"entries\":[", "0", "]}}"),
      ("{\"Authenticators\":[", "0", "]}"), ("{\"entries\":[", "0", "]}"),
    ])
  func values(_ start: String, _ value: String, _ end: String) throws {
    // 10,001 entries are refused by their number; millions of values by theirs, before a decoder sees them.
    for (count, error) in [(10_001, VaultFormatError.tooLarge), (2_100_000, .tooComplex)] {
      let text = start + Array(repeating: value, count: count).joined(separator: ",") + end
      #expect(throws: error) { try read(text) }
    }
  }

  @Test(
    "Names and texts of many combining marks are refused before they are decoded",
    arguments: [
      "{\"MARKS\":1}", "{\"services\":[{\"name\":\"a\",\"secret\":\"GEZDGNBV\",\"MARKS\":1}]}",
      "{\"services\":[{\"name\":\"MARKS\",\"secret\":\"GEZDGNBV\"}]}", "[{\"type\":\"MARKS\"}]",
    ])
  func marks(_ text: String) throws {
    // In proportion to the square, 100,000 marks take seconds and ten million take days.
    for marks in [
      String(repeating: "\u{301}\u{323}", count: 50_000), String(repeating: #"\u0301\u0323"#, count: 50_000),
    ] {
      #expect {
        try read(text.replacingOccurrences(of: "MARKS", with: marks))
      } throws: { error in
        (error as? VaultFormatError).map { "\($0)" }?.contains("10,000 entries") ?? false
      }
    }
    // Each text may be short enough, and all together take minutes.
    for (mark, count, isRefused) in [("\u{301}", 64, false), ("\u{301}", 65, true), (#"\u0323"#, 65, true)] {
      let name = "e" + String(repeating: mark, count: count)
      let text = "{\"services\":[{\"name\":\"\(name)\",\"secret\":\"GEZDGNBV\"}]}"
      if isRefused {
        #expect(throws: VaultFormatError.tooComplex) { try read(text) }
      } else {
        #expect(try read(text).entries.count == 1)
      }
    }
    let short = String(repeating: "\u{301}", count: 30)
    let file = "{\"services\":[{\"name\":\"e\(short)\",\"secret\":\"GEZDGNBV\",\"x\(short)\":1}]}"
    #expect(try read(file).entries.count == 1)
  }

  @Test(
    "Lists of links with many combining marks are refused before they are divided into lines",
    arguments: [
      "#MARKS", "MARKS", "otpauth://totp/MARKS?secret=GEZDGNBV", "otpauth-migration://offline?data=MARKS",
      "otpauth-migration://MARKS", "steam://MARKS", "MARKS://totp/a",
    ])
  func listMarks(_ line: String) throws {
    let marks = String(repeating: "\u{301}\u{323}", count: 50_000)
    let text = "otpauth://totp/a?secret=GEZDGNBV\n" + line.replacingOccurrences(of: "MARKS", with: marks)
    for format in [VaultFormat.otpauth, .ente, .google, nil] {
      #expect(throws: VaultFormatError.tooComplex) { try read(text, as: format) }
    }
  }

  @Test("A name or note with more than 64 combining marks in a row is a fault of its entry", arguments: [64, 65])
  func nameMarks(_ count: Int) throws {
    let (escaped, marks) = (String(repeating: "%CC%81", count: count), String(repeating: "\u{301}", count: count))
    let quoted = String(repeating: "%5Cu0301", count: count)
    let texts = [
      "otpauth://totp/A:e\(escaped)?secret=GEZDGNBV&issuer=A", "otpauth://totp/b?secret=GEZDGNBV&issuer=e\(escaped)",
      "otpauth://totp/b?secret=GEZDGNBV&codeDisplay=%7B%22note%22%3A%22e\(quoted)%22%7D",
      "otpauth://totp/b?secret=GEZDGNBV&codeDisplay=%7B%22tags%22%3A%5B%22e\(quoted)%22%5D%7D",
      migrationLink(name: "e\(marks)"), migrationLink(name: "b", issuer: "e\(marks)"),
    ]
    for text in texts {
      let file = try read(text)
      #expect(file.entries.count == (count > 64 ? 0 : 1) && file.faults.count == (count > 64 ? 1 : 0), "\(file)")
    }
    #expect((EntryBounds.fault(account: "e\(marks)") == nil) == (count <= 64))
  }

  @Test func `names of a migration are of any length, and the same part counts once`() throws {
    // Both kinds of content would take seconds to compare as texts.
    let long = String(repeating: "\u{301}\u{323}", count: 10_000)
    let links = Array(repeating: migrationLink(name: "e\(long)"), count: 10) + [migrationLink(name: "b")]
    let file = try read(links.joined(separator: "\n"))
    #expect(file.entries.map(\.account) == ["b"] && file.faults.count == 1)
  }

  @Test func `the missing parts of all migrations in a file are bounded together`() throws {
    let links = (0..<2).map { migrationLink(name: "a", parts: 10_000, export: $0) }
    #expect(try read(links[0]).missingParts.count == 9_999)
    #expect(throws: VaultFormatError.tooLarge) { try read(links.joined(separator: "\n")) }
    // Exports with a few parts each are no matter.
    let small = (0..<100).map { migrationLink(name: "a", parts: 3, export: $0) }
    #expect(try read(small.joined(separator: "\n")).missingParts.count == 200)
  }

  @Test func `lines are counted before they are made`() throws {
    let text = "otpauth://totp/a?secret=GEZDGNBV\n" + String(repeating: "\n", count: 100_001)
    #expect(throws: VaultFormatError.tooLarge) { try read(text) }
  }

  @Test func `a name that is too long is a fault of its entry`() throws {
    let text = """
      {"services":[{"name":"\(String(repeating: "n", count: 32_000))","secret":"GEZDGNBV"},
      {"name":"good","secret":"GEZDGNBV"}]}
      """
    let file = try read(text)
    #expect(file.entries.map(\.issuer) == ["good"] && file.faults.count == 1)
    #expect(file.faults[0].reason.contains("32000 bytes") && file.faults[0].place.utf8.count < 200)
  }

  @Test func `password slots that take long together are refused before any is tried`() throws {
    let slot = """
      {"type":1,"uuid":"u","key":"00","key_params":{"nonce":"00","tag":"00"},"n":262144,"r":8,"p":1,"salt":"00"}
      """
    let text = """
      {"version":1,"header":{"slots":[\(Array(repeating: slot, count: 8).joined(separator: ","))],
      "params":{"nonce":"00","tag":"00"}},"db":"AAAA"}
      """
    #expect {
      try read(text)
    } throws: { error in
      if case VaultFormatError.keyDerivation = error { true } else { false }
    }
  }

  @Test func `migration links without a number of their export and a place in it all come in`() throws {
    let entries = (0..<2).map { number in
      VaultEntry(issuer: "A", account: "\(number)", secret: Array("secret \(number)".utf8), at: 500)
    }
    // As QR codes of other tools have them: entries alone. The numbers stand at the end of a link that is written here.
    func link(_ entry: VaultEntry) throws -> String {
      let bytes = try VaultWriter.write([entry], as: .google, password: nil, at: 1).bytes
      let text = String(decoding: bytes, as: UTF8.self).split(separator: "\n")[0]
      let base64 = try #require(text.split(separator: "data=").last?.description.removingPercentEncoding)
      let content = Array(try #require(Data(base64Encoded: base64)))
      // The first field is the entry: a tag, and a length below 128.
      let alone = Data(content.prefix(2 + Int(content[1])))
      return "otpauth-migration://offline?data=\(alone.base64EncodedString().replacing("+", with: "%2B"))"
    }
    let links = try entries.map(link)
    let file = try read(links.joined(separator: "\n"))
    #expect(file.entries == entries && file.missingParts.isEmpty && file.faults.isEmpty)
    #expect(try read((links + links).joined(separator: "\n")).entries == entries)
  }

  @Test func `an entry that its owner has thrown away is no fault`() throws {
    let text = """
      otpauth://totp/Ente:bob?secret=GEZDGNBV&issuer=Ente&codeDisplay=%7B%22trashed%22%3Atrue%7D
      otpauth://totp/Ente:eve?secret=GEZDGNBVGY&issuer=Ente&codeDisplay=%7B%22trashed%22%3Afalse%7D
      """
    let file = try read(text)
    #expect(file.entries.map(\.account) == ["eve"] && file.faults.isEmpty)
  }
}
