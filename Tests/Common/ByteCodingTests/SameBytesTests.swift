import ByteCoding
import Testing

@Suite("Texts as bytes")
struct SameBytesTests {
  @Test(
    "A text is split at each byte of the separator, also where a combining mark hides it",
    arguments: [
      ("a.b.c", ["a", "b", "c"]), ("", [""]), (".", ["", ""]), ("a..b.", ["a", "", "b", ""]),
      ("a.\u{301}b", ["a", "\u{301}b"]), ("é.\u{301}\u{323}.ü", ["é", "\u{301}\u{323}", "ü"]),
    ])
  func split(text: String, parts: [String]) {
    let found = text.split(atBytes: UInt8(ascii: "."))
    #expect(found.map { Array($0.utf8) } == parts.map { Array($0.utf8) })
    #expect(text[...].split(atBytes: UInt8(ascii: ".")) == found)
    let filled = text.split(atBytes: UInt8(ascii: "."), omittingEmptySubsequences: true)
    #expect(filled.map { Array($0.utf8) } == parts.filter { !$0.isEmpty }.map { Array($0.utf8) })
    #expect(text.split(atBytes: UInt8(ascii: "."), maxSplits: 1).count == min(parts.count, 2))
  }

  @Test func `texts that only look the same have other bytes`() {
    #expect("e\u{301}" == "\u{E9}" && !"e\u{301}".hasSameBytes(as: "\u{E9}"))
    #expect("\u{E9}".hasSameBytes(as: "x\u{E9}".dropFirst()))
  }
}
