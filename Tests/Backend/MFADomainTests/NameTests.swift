import Foundation
import MFADomain
import Testing

@Suite("User names")
struct NameTests {
  /// The bytes that a database compares.
  // A literal cannot have one.
  private static func noncharacter(_ value: UInt32) -> String {
    "zoe" + String(Unicode.Scalar(value).map(Character.init) ?? "?")
  }

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

  @Test(
    "the name of a new account has no invisible characters and nothing that looks like the end of a name",
    arguments: [
      // Variation selectors, tags, fillers, joiners, a soft hyphen and the braille blank.
      "zoe\u{FE0F}", "zoe\u{FE00}", "zoe\u{E0100}", "zoe\u{115F}", "zoe\u{3164}", "zoe\u{FFA0}",
      "zoe\u{34F}", "zoe\u{180B}", "z\u{2800}oe", "\u{2764}\u{FE0F}",
      // Separators of lines and paragraphs, and spaces other than the common one.
      "zoe\u{2028}x", "zoe\u{2029}x", "zoe\u{1680}x", "zoe  x",
      // Noncharacters, private use, and code points that are not assigned.
      Self.noncharacter(0xFDD0), Self.noncharacter(0xFFFF), "zoe\u{E000}", "zoe\u{F0000}", "zoe\u{378}",
      // Marks without a letter, and more of them than a letter has.
      "\u{301}zoe", "z\u{301}\u{301}\u{301}\u{301}\u{301}oe",
    ])
  func invisible(_ text: String) throws {
    // An account that has the name can still be meant.
    let name = try Username(text)
    #expect(throws: InvalidValue.self) { try name.checkAsNew() }
  }

  @Test(
    "names of people, addresses and emoji are names of new accounts",
    arguments: [
      "zoe", "Zo\u{EB} M\u{FC}ller", "zoe@example.com", "o'brien-2", "\u{2764}", "ada \u{1F600}",
      "Nguy\u{1EC5}n", "Nguye\u{302}\u{303}n", "\u{939}\u{93F}\u{928}\u{94D}\u{926}\u{940}", "\u{5E9}\u{5B8}\u{5DC}",
    ])
  func ordinary(_ text: String) throws { try Username(text).checkAsNew() }

  @Test("bytes are counted before characters: a name of many marks is refused at once")
  func longMarks() {
    for text in ["a" + String(repeating: "\u{301}", count: 20_000), String(repeating: "\u{1F468}\u{200D}", count: 99)] {
      #expect(throws: InvalidValue.self) { try Username(text) }
      #expect(throws: InvalidValue.self) { try DeviceModel(text) }
    }
  }

  @Test(
    "the name of a device has no control or invisible characters; an emoji may have its selector",
    arguments: [
      ("Ada's iPhone", true), ("\u{2764}\u{FE0F}", true), ("1\u{FE0F}\u{20E3}", true), ("", true), ("a\u{A0}b", true),
      ("a\u{2028}b", false), ("a\u{2029}b", false), ("a\u{FE0F}", false), ("a\u{34F}b", false), ("a\u{3164}", false),
      ("a\u{E000}", false), (Self.noncharacter(0xFFFE), false), ("a\u{202E}b", false), ("a\u{0}b", false),
      ("a\u{9B}b", false),
    ])
  func deviceNames(_ text: String, _ isGood: Bool) {
    #expect(((try? DeviceModel(text)) != nil) == isGood)
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
