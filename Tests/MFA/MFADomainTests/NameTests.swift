import Foundation
import MFADomain
import Testing

@Suite("User names")
struct NameTests {
  /// The bytes that a database compares.
  private func key(_ text: String) throws -> [UInt8] { Array(try Username(text).key.utf8) }

  @Test(
    "names that differ only in case or composition have the same key, byte for byte",
    arguments: [
      ["ada", "ADA", "Ada"], ["jos\u{E9}", "JOS\u{C9}", "jose\u{301}", "JOSE\u{301}"],
      // The small letter has a precomposed character, and the capital letter has none.
      ["\u{1F0}", "J\u{30C}", "j\u{30C}"], ["\u{1E98}", "W\u{30A}"],
      // The capital sigma has a different small letter at the end of a word.
      ["\u{3BF}\u{3B4}\u{3BF}\u{3C2}", "\u{39F}\u{394}\u{39F}\u{3A3}", "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"],
      ["stra\u{DF}e", "STRASSE", "STRA\u{1E9E}E"], ["\u{130}", "i\u{307}", "I\u{307}"],
      ["\u{1E9B}\u{323}", "\u{1E62}\u{307}"], ["k", "\u{212A}"], ["\u{3A9}", "\u{2126}", "\u{3C9}"],
    ])
  func oneName(_ names: [String]) throws {
    for name in names { #expect(try key(name) == key(names[0]), "\(name)") }
    #expect(try Set(names.map { try Username($0) }).count == 1)
  }

  @Test("names that differ only in compatibility forms are equal, and their former keys differ")
  func compatibility() throws {
    #expect(try Username("\u{FF21}dmin") == Username("admin"))
    #expect(try Username("\u{FF21}dmin").formerKey == "\u{FF41}dmin")
    #expect(try Username("\u{1D41A}da") == Username("ada"))
  }

  @Test(
    "the name of a new account has letters of one script",
    arguments: [
      ("admin", true), ("Jos\u{E9}-1_x", true), ("\u{430}\u{434}\u{43C}\u{438}\u{43D}", true), ("\u{430}dmin", false),
      ("\u{3BF}livia", false), ("\u{1D41A}\u{434}", false), ("\u{6771}\u{4EAC}\u{30BF}\u{30EF}\u{30FC} tower", true),
      ("a\u{3164}b", false), ("a\u{34F}b", false), ("ada \u{1F600}", true), ("\u{13A0}\u{13B3}", false),
    ])
  func scripts(_ text: String, _ isGood: Bool) throws {
    let name = try Username(text)
    if isGood { try name.checkAsNew() } else { #expect(throws: InvalidValue.self) { try name.checkAsNew() } }
  }

  @Test("names that differ in a letter or an accent have different keys")
  func severalNames() throws {
    #expect(try Set(["ada", "\u{E1}da", "ad", "adas", "\u{430}da"].map(key)).count == 5)
  }

  @Test("the cases and the normalization forms of every character have the same key")
  func everyCharacter() throws {
    var count = 0
    for value in 0x21...0x1FFFF as ClosedRange<UInt32> {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let properties = scalar.properties
      guard properties.changesWhenUppercased || properties.changesWhenLowercased else { continue }
      count += 1
      let text = "a" + String(scalar)
      let expected = try key(text)
      let forms = [
        text.uppercased(), text.lowercased(), text.decomposedStringWithCanonicalMapping,
        text.uppercased().decomposedStringWithCanonicalMapping, text.lowercased().precomposedStringWithCanonicalMapping,
      ]
      for form in forms { #expect(try key(form) == expected, "U+\(String(value, radix: 16)): \(form)") }
    }
    #expect(count > 2000)
  }
}
