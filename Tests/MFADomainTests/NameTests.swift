import Foundation
import MFADomain
import Testing

@Suite("Names")
struct NameTests {
  /// What a database compares.
  private func key(_ text: String) throws -> [UInt8] { Array(try Username(text).key.utf8) }

  @Test(
    "names that differ in case or composition alone are one name, byte for byte",
    arguments: [
      ["ada", "ADA", "Ada"], ["jos\u{E9}", "JOS\u{C9}", "jose\u{301}", "JOSE\u{301}"],
      // The capital has no character of its own, the small letter has.
      ["\u{1F0}", "J\u{30C}", "j\u{30C}"], ["\u{1E98}", "W\u{30A}"],
      // A sigma at the end of a word has another small letter.
      ["\u{3BF}\u{3B4}\u{3BF}\u{3C2}", "\u{39F}\u{394}\u{39F}\u{3A3}", "\u{3BF}\u{3B4}\u{3BF}\u{3C3}"],
      ["stra\u{DF}e", "STRASSE", "STRA\u{1E9E}E"], ["\u{130}", "i\u{307}", "I\u{307}"],
      ["\u{1E9B}\u{323}", "\u{1E62}\u{307}"], ["k", "\u{212A}"], ["\u{3A9}", "\u{2126}", "\u{3C9}"],
    ])
  func oneName(_ names: [String]) throws {
    for name in names { #expect(try key(name) == key(names[0]), "\(name)") }
    #expect(try Set(names.map { try Username($0) }).count == 1)
  }

  @Test("names that differ in more are several")
  func severalNames() throws {
    #expect(try Set(["ada", "\u{E1}da", "ad", "adas", "\u{430}da"].map(key)).count == 5)
  }

  @Test("of every character, upper and lower case, composed and decomposed, are one name")
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
