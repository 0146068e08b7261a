import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing
import VaultFormats

private func read(_ text: String, as format: VaultFormat? = nil) throws -> ImportedFile {
  try VaultReader.read(Array(text.utf8), as: format, at: 5) { "" }
}

private func shown(_ entry: VaultEntry) -> String {
  "\(entry.name) \(Base32.encode(entry.secret)) \(entry.kind) \(entry.digits) \(entry.tags)"
}

private let bitwarden =
  "folder,favorite,type,name,notes,fields,reprompt,login_uri,login_username,login_password,login_totp\n"
private let link = "otpauth://totp/GitHub:alice?secret=GEZDGNBVGY3TQOJQ&issuer=GitHub&digits=8"

@Suite("Tables of password managers", .timeLimit(.minutes(3)))
struct TableTests {
  @Test(
    "The tables of each app give their entries, and no passwords",
    arguments: [
      ("bitwarden.csv", VaultFormat.bitwarden), ("keepassxc.csv", .keePassXC), ("1password.csv", .onePassword),
    ])
  func samples(_ name: String, _ format: VaultFormat) throws {
    let bytes = Array(try Data(contentsOf: ProjectFile.url("Tests/World/authenticator/" + name)))
    let file = try VaultReader.read(bytes, at: 5) { "" }
    #expect(file.format == format && file.faults.isEmpty)
    #expect(file.entries.map(shown) == ["A: a GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ totp(period: 30) 6 []"])
    #expect(!"\(file)".contains("never"))
    #expect(throws: VaultFormatError.self) { try VaultWriter.write(file.entries, as: format, password: nil, at: 1) }
  }

  @Test func `a code of Bitwarden is a link, a secret or a link of Steam, and a row without one is passed over`() throws
  {
    let file = try read(
      bitwarden + """
        work,1,login,Other name,"a note, and
        a ""second"" line",,0,https://a.example,bob,never,\(link)
        ,,note,No code,text,,0,,,,
        ,,login,Plain,,,0,,carol,never,gezd gnbv gy3t qojr
        games,,login,Valve,,,0,,dave,never,steam://GEZDGNBVGY3TQOJS

        """)
    #expect(file.format == .bitwarden && file.faults.isEmpty, "\(file.faults)")
    #expect(
      file.entries.map(shown) == [
        #"GitHub: alice GEZDGNBVGY3TQOJQ totp(period: 30) 8 ["work"]"#,
        "Plain: carol GEZDGNBVGY3TQOJR totp(period: 30) 6 []", #"Valve: dave GEZDGNBVGY3TQOJS steam 5 ["games"]"#,
      ])
    #expect(!"\(file)".contains("never") && file.entries.allSatisfy { $0.note.isEmpty })
  }

  @Test(
    "Separators, line ends, a mark of UTF-8 and quotation marks have no part in the entries",
    arguments: [",", ";", "\t"], ["\n", "\r\n", "\r"])
  func dialects(_ separator: String, _ end: String) throws {
    let rows = [
      ["Group", "Title", "Username", "TOTP"], ["Root", "GitHub", "alice", link],
      ["Root/Mail/old", "\u{C9}t\u{E9}", "b", "GEZDGNBVGY3TQOJR"],
    ]
    for isQuoted in [false, true] {
      let table = rows.map { row in row.map { isQuoted ? "\"\($0)\"" : $0 }.joined(separator: separator) }
        .joined(separator: end)
      for text in [table, table + end, "\u{FEFF}" + table + end + end] {
        let file = try read(text)
        #expect(file.format == .keePassXC && file.faults.isEmpty, "\(file.faults)")
        #expect(file.entries.map(\.name) == ["GitHub: alice", "\u{C9}t\u{E9}: b"])
        #expect(file.entries.map(\.tags) == [[], ["Mail/old"]])
      }
    }
  }

  @Test("The columns of 1Password are known by both of their names", arguments: ["OTPAuth", "One-time Password"])
  func onePassword(_ column: String) throws {
    let file = try read("Title,Username,\(column),Tags\nGitHub,alice,\(link),\"b; a\"\n")
    #expect(file.format == .onePassword && file.entries.map(\.tags) == [["a", "b"]])
  }

  @Test func `each row that is of no use is named with its number, and the others come in`() throws {
    let start = ",,login,"
    let file = try read(
      bitwarden + """
        \(start)Bad,,,0,,a,never,GEZDGNBV1
        \(start)Short,,,0
        \(start)Long,,,0,,a,never,GEZDGNBV,x
        \(start)Good,,,0,,a,never,GEZDGNBV,
        \(start)Hash,,,0,,a,never,otpauth://totp/a?secret=GEZDGNBV&algorithm=MD5
        \(start)\(String(repeating: "n", count: 4097)),,,0,,a,never,GEZDGNBVGY
        \(start)Marks,,,0,,a,never,\(String(repeating: "\u{301}", count: 20_000))

        """)
    #expect(file.entries.map(\.name) == ["Good: a"])
    let places = file.faults.map { $0.place.prefix(12) }
    #expect(
      places == ["row 2 (Bad: ", "row 3 (Short", "row 4 (Long:", "row 6 (Hash:", "row 7 (nnnnn", "row 8 (Marks"])
    for (fault, words) in zip(
      file.faults,
      ["not valid", "4+6 fields", "12 fields, and the first row names 11", "MD5", "4097 bytes", "column logintotp"])
    {
      let words = words == "4+6 fields" ? "7 fields, and the first row names 11" : words
      #expect(fault.reason.contains(words) && !fault.reason.contains("GEZD"), "\(fault)")
    }
  }

  @Test func `bytes that are not UTF-8 are a fault of their row`() throws {
    let head = Array((bitwarden + ",,login,").utf8)
    let bytes = head + [0xE4, 0xF6] + Array(",,,0,,a,never,GEZDGNBV\n,,login,B,,,0,,b,never,GEZDGNBV\n".utf8)
    let file = try VaultReader.read(bytes, at: 5) { "" }
    #expect(file.entries.map(\.name) == ["B: b"])
    #expect(file.faults.map(\.place) == ["row 2 (a)"] && file.faults[0].reason.contains("save the table as UTF-8"))
  }

  @Test(
    "A quotation mark out of its place ends the reading with the row",
    arguments: [
      ("A,\"open,,\n", "not closed"), ("A,\"b\"c,GEZDGNBV,x\n", "text follows"),
      (String(repeating: ",", count: 300), "more than 256 fields"),
    ])
  func quotationMarks(_ row: String, _ reason: String) throws {
    #expect {
      try read("title,username,otpauth,tags\nA,a,GEZDGNBV,\n" + row)
    } throws: { error in
      guard case VaultFormatError.malformedTable(.onePassword, row: 3, let why) = error else { return false }
      return why.contains(reason) && "\(error)".contains("row 3")
    }
  }

  @Test func `a table without the column of the codes, and no table, are refused for the named format`() throws {
    for format in [VaultFormat.bitwarden, .keePassXC, .onePassword] {
      #expect {
        try read("a,b\nc,d\n", as: format)
      } throws: { error in
        guard case VaultFormatError.unsupported(let what, let hint) = error else { return false }
        return what.contains("names no column") && !hint.isEmpty
      }
      for text in ["", "\u{0}\u{1}\u{2},\u{3}\n", "one column\n"] {
        #expect(throws: VaultFormatError.malformed(format)) { try read(text, as: format) }
      }
    }
  }

  @Test func `10 MB of rows, marks and separators are read or refused in a bounded time`() throws {
    let head = "title,username,otpauth,tags\n"
    let clock = ContinuousClock()
    for part in ["\"", "\"\"", ",", ";\n", "\n", "a,b,,\n", "\u{0}", "\"a\n\"\"", "a,b,GEZDGNBV,\n"] {
      let text = head + String(repeating: part, count: 10_000_000 / part.utf8.count)
      let time = clock.measure { _ = try? read(text) }
      #expect(time < .seconds(30), "\(part.debugDescription): \(time)")
    }
    // One row more than ten for each entry, without codes.
    #expect(throws: VaultFormatError.tooLarge) { try read(head + String(repeating: "a,b,,\n", count: 100_000)) }
    #expect(throws: VaultFormatError.tooLarge) { try read(head + String(repeating: "a,b,GEZDGNBV,\n", count: 10_001)) }
  }

  @Test func `a table that is cut off anywhere gives no more entries than the whole one`() throws {
    let table = Array((bitwarden + ",,login,A,\"n\"\"\n\",,0,,a,never,\(link)\n,,login,B,,,0,,b,never,GEZDGNBV\n").utf8)
    for count in table.indices {
      let file = try? VaultReader.read(Array(table.prefix(count)), as: .bitwarden, at: 5) { "" }
      #expect(file?.entries.count ?? 0 <= 2)
    }
  }
}

@Suite("Files of 1Password and Steam", .timeLimit(.minutes(3)))
struct PasswordFileTests {
  private static let item = """
    {"uuid":"u","state":"active","overview":{"title":"GitHub","tags":["work",""]},"details":{"loginFields":[
    {"value":"never","designation":"password"},{"value":"alice","designation":"username"}],"sections":[{"title":"",
    "fields":[{"title":"PIN","id":"p","value":{"concealed":"never"}},{"title":"born","value":{"date":5}},
    {"title":"one-time password","id":"TOTP_1","value":{"totp":"\(link)"}},
    {"title":"second","value":{"totp":"GEZD GNBV GY3T QOJR"}}]}]}}
    """

  @Test("The data of a 1PUX archive gives each code", arguments: [false, true])
  func onePassword(_ isWrapped: Bool) throws {
    let item = isWrapped ? "{\"item\":\(Self.item)}" : Self.item
    let text = """
      {"accounts":[{"attrs":{"email":"a@example.com"},"vaults":[{"attrs":{"name":"Private"},"items":[\(item),
      {"overview":{"title":"No code"},"details":{"sections":[]}},{"details":5}]},{"attrs":{}}]}]}
      """
    let file = try read(text)
    #expect(file.format == .onePassword)
    #expect(
      file.entries.map(shown) == [
        #"GitHub: alice GEZDGNBVGY3TQOJQ totp(period: 30) 8 ["work"]"#,
        #"GitHub: alice GEZDGNBVGY3TQOJR totp(period: 30) 6 ["work"]"#,
      ])
    #expect(file.faults.map(\.place) == ["entry 3"] && !"\(file)".contains("never"))
    #expect(throws: VaultFormatError.malformed(.onePassword)) { try read(#"{"accounts":5}"#) }
  }

  @Test func `a maFile gives Steam's codes`() throws {
    let secret = Data("12345678901234567890".utf8).base64EncodedString()
    let text = """
      {"shared_secret":"\(secret)","serial_number":"1","revocation_code":"R1","account_name":"gabe",
      "identity_secret":"bmV2ZXI=","Session":{"SteamID":76561197960287930}}
      """
    let file = try read(text)
    #expect(file.format == .maFile && file.faults.isEmpty)
    #expect(file.entries.map(shown) == ["Steam: gabe GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ steam 5 []"])
    #expect(!"\(file)".contains("bmV2ZXI"))
    for value in ["", "???", "GEZDGNBV1"] {
      let faulty = try read(#"{"shared_secret":"\#(value)","account_name":"gabe"}"#)
      #expect(faulty.faults.map(\.place) == ["entry 1 (Steam: gabe)"])
      #expect(faulty.faults[0].reason.contains("shared_secret"))
    }
    #expect(throws: VaultFormatError.malformed(.maFile)) { try read(#"{"account_name":"gabe"}"#, as: .maFile) }
  }

  @Test func `an encrypted maFile, its manifest and XML of KeePass are named with what to do`() throws {
    let box = Data(repeating: 0xA7, count: 1024).base64EncodedString()
    let manifest = #"{"encrypted":true,"entries":[{"encryption_iv":"x","encryption_salt":"y","steamid":7}]}"#
    let xml = #"<?xml version="1.0"?><KeePassFile><Root></Root></KeePassFile>"#
    for (text, words) in [(box, "encrypted maFile"), (box + "\n", "maFile"), (manifest, "maFile"), (xml, "XML export")]
    {
      for format in [nil, words == "XML export" || text == manifest ? nil : VaultFormat.maFile] {
        #expect {
          try read(text, as: format)
        } throws: { error in
          guard case VaultFormatError.unsupported(let what, let hint) = error else { return false }
          return what.contains(words) && !hint.isEmpty
        }
      }
    }
  }
}
