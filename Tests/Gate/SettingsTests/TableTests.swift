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
    arguments: ["", ".", "a.", "a..b", "[0]", "a[", "a[]", "a[x]", "a[-1]", "a[0", "a[0]b", "a.*"])
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

  @Test("A star in a key is a name that the file chooses, in the order of the file")
  func names() {
    let key = Key("hosts.*.ports.*", .port, "A port.").definition
    let table = SettingsTable(
      [key], of: "x", variablePrefix: "X_", sample: "hosts: {}", emptyVariables: .unset, isForeign: { _ in false })
    let yaml = "hosts: { b.c: { ports: { in: 1, out: x, in: 2 } }, a: { prots: {}, ports: { '': 1 } } }"
    let entries = FileLayer.entries(of: yaml, at: "x.yaml", in: "/", table)
    #expect(entries.names(of: .root["hosts"]) == ["b.c", "a"])
    let port = SettingPath(pattern: key.pattern, names: ["b.c", "in"])
    #expect(port.text == "hosts.b.c.ports.in" && port.pattern == key.pattern && entries.values[port]?.text == "1")
    #expect(
      entries.faults.map(\.description) == [
        "x.yaml:1:38: hosts.b.c.ports.out: \"x\" is not a port number, 0 to 65535",
        "x.yaml:1:41: hosts.b.c.ports.in: set twice, first in line 1",
        "x.yaml:1:57: hosts.a.prots: unknown key (did you mean hosts.a.ports)",
        "x.yaml:1:77: hosts.a.ports: not a valid key: expected a word",
      ])
    // A variable cannot write such a name.
    let variables = Variables(environment: ["X_HOSTS__A__PORTS__IN": "1"], dotenv: [:]).entries(in: "/", table)
    #expect(variables.values.isEmpty && variables.faults.count == 1)
  }

  @Test("A word that is not similar to any key gets no suggestion")
  func noSuggestion() {
    #expect(Suggestions.nearest(to: "abc", in: ["xyz", "port"]) == nil)
  }
}
