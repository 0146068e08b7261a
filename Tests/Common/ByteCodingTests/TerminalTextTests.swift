import ByteCoding
import Foundation
import Testing

@Suite struct TerminalTextTests {
  static let unsafe: [Unicode.Scalar] = [
    "\0", "\t", "\n", "\r", "\u{1B}", "\u{7F}", "\u{85}", "\u{9B}", "\u{AD}", "\u{61C}", "\u{200B}", "\u{200E}",
    "\u{200F}", "\u{2028}", "\u{2029}", "\u{202A}", "\u{202E}", "\u{2060}", "\u{2066}", "\u{2069}", "\u{FEFF}",
    "\u{E0041}",
  ]

  @Test(
    "A character that controls the terminal, hides or reorders text is replaced, and escaped in JSON", arguments: unsafe
  )
  func replaced(_ scalar: Unicode.Scalar) throws {
    let text = "a\(scalar)b"
    #expect(TerminalText.printable(text) == "a\u{FFFD}b")
    #expect(TerminalText.printableLines(text) == (scalar == "\n" || scalar == "\t" ? text : "a\u{FFFD}b"))
    let json = String(decoding: try JSONEncoder().encode([text]), as: UTF8.self)
    let escaped = TerminalText.escaped(json: json + "\n")
    #expect(escaped.dropLast().unicodeScalars.contains(where: TerminalText.isUnsafe) == false)
    #expect(try JSONDecoder().decode([String].self, from: Data(escaped.utf8)) == [text])
  }

  @Test(
    "Other text is unchanged", arguments: ["", "plain ~", "é", "\u{A0}", "日本", "\u{1F600}", "\u{FFFD}", "e\u{301}"])
  func kept(_ text: String) {
    #expect(Array(TerminalText.printable(text).utf8) == Array(text.utf8))
    #expect(Array(TerminalText.escaped(json: text).utf8) == Array(text.utf8))
  }
}

@Suite struct ExcludedChecksTests {
  @Test func `a plus sign may stand for a space of a name, and other bytes name another check`() {
    let excluded = ExcludedChecks(["gate+keys", "a+b", "cafe\u{301}"])
    #expect(excluded.contains("gate keys") && excluded.contains("a+b") && excluded.contains("a b"))
    #expect(!excluded.contains("gate+key") && !excluded.contains("caf\u{E9}"))
    #expect(excluded.warning(known: ["gate keys", "a+b", "cafe\u{301}"]) == nil)
  }

  @Test func `a warning repeats a short beginning of a value, whatever marks its characters have`() throws {
    let value = "a" + String(repeating: "\u{301}\u{316}", count: 4000)
    let warning = try #require(ExcludedChecks([value]).warning(known: ["store"]))
    #expect(warning.unicodeScalars.count < 200 && warning.contains("cannot be excluded"))
  }
}
