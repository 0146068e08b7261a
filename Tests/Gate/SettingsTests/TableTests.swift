import ByteCoding
@testable import ConfigurationEngine
import Testing

@testable import Settings

@Suite("The table of settings is consistent")
struct TableTests {
  @Test("Each key appears once, with a summary")
  func keysAreDistinct() {
    #expect(Set(SettingsTable.gate.keys.map(\.pattern)).count == SettingsTable.gate.keys.count)
    for key in SettingsTable.gate.keys {
      #expect(key.summary.hasSuffix("."), "\(key.pattern)")
      #expect(!key.form.isEmpty && !key.kind.isEmpty, "\(key.pattern)")
    }
  }

  @Test("Each default is a valid value of its key")
  func defaults() {
    for key in SettingsTable.gate.keys {
      guard let standard = key.standard else { continue }
      #expect(key.problem(standard) == nil, "\(key.pattern)")
    }
  }

  @Test("The name of each key's variable maps back to the key")
  func variables() {
    for key in SettingsTable.gate.keys {
      #expect(SettingsTable.gate.path(of: SettingsTable.gate.variable(of: key))?.pattern == key.pattern)
    }
    let upstream = SettingPath(pattern: "routes[].upstream", indices: [])
    #expect(SettingsTable.gate.variable(for: upstream) == "SALLYPORT_ROUTES__0__UPSTREAM")
  }

  @Test("A path is parsed and printed unchanged", arguments: ["a", "a.b", "a[0].b", "a[12].b.c[3]"])
  func paths(_ text: String) {
    #expect(SettingPath(text: text)?.text == text)
  }

  @Test(
    "An invalid path is refused",
    arguments: ["", ".", "a.", "a..b", "[0]", "a[", "a[]", "a[x]", "a[-1]", "a[0", "a[0]b"])
  func notPaths(_ text: String) {
    #expect(SettingPath(text: text) == nil)
  }

  @Test(
    "The distance between words counts changed letters",
    arguments: [
      ("port", "port", 0), ("prot", "port", 1), ("por", "port", 1), ("ports", "port", 1), ("part", "port", 1),
      ("", "ab", 2), ("ab", "", 2), ("kitten", "sitting", 3),
    ])
  func distance(_ first: String, _ second: String, _ expected: Int) {
    #expect(Suggestions.distance(first, second) == expected)
  }

  @Test("A word that is not similar to any key gets no suggestion")
  func noSuggestion() {
    #expect(Suggestions.nearest(to: "abc", in: ["xyz", "port"]) == nil)
  }
}
