@testable import ConfigurationEngine
import Foundation
import TestSupport
import Testing

@testable import Settings

@Suite("The examples match the table of settings")
struct ExampleTests {
  private static let available = SettingsTable.gate.keys

  @Test("The example starts a gate and shows the defaults")
  func example() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "fullchain.pem")
    try workspace.write(Workspace.key, to: "privkey.pem", permissions: 0o600)
    let settings = try workspace.load(yaml: ProjectFile.text("config/sallyport.yaml"), environment: [:])
    #expect(settings.warnings == [])
    for value in settings.effective {
      // An empty list has a row with the list's name.
      let pattern = SettingPath(text: value.key)?.pattern
      let key = try #require(Self.available.first { [pattern, pattern.map { $0 + "[]" }].contains($0.pattern) })
      if let standard = key.standard { #expect(value.text == standard, "\(value.key)") }
    }
  }

  /// Returns the example with its comments turned into settings.
  static func everything() throws -> String {
    try ProjectFile.text("config/sallyport.yaml").split(separator: "\n", omittingEmptySubsequences: false)
      // A comment of the document has one space; a key that is commented out has none, or its indentation.
      .map { $0.hasPrefix("#  ") || $0.hasPrefix("#") && !$0.hasPrefix("# ") ? $0.dropFirst() : $0 }
      .joined(separator: "\n")
  }

  @Test("The example with its comments enabled has every key")
  func everyKey() throws {
    let entries = FileLayer.entries(of: try Self.everything(), at: "sallyport.yaml", in: "/", .gate)
    #expect(entries.faults == [])
    // A list may be empty or have elements.
    let given = Set(entries.values.keys.map(\.pattern) + entries.containers.keys.map { $0.pattern + "[]" })
    for key in Self.available { #expect(given.contains(key.pattern), "\(key.pattern)") }
  }

  @Test("The example of .env starts a gate")
  func dotenv() throws {
    let workspace = try Workspace()
    try workspace.write(Workspace.certificate, to: "fullchain.pem")
    try workspace.write(Workspace.key, to: "privkey.pem", permissions: 0o600)
    let text = try ProjectFile.text("config/env.example")
    let settings = try workspace.load(dotenv: text, environment: [:])
    #expect(settings.appAttest.apps.map(\.bundleID) == ["com.example.yourapp"])

    // Also with all its comments enabled.
    try workspace.write(Workspace.certificate, to: "config/client-ca/ca.pem")
    let everything = text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix("#") && !$0.hasPrefix("# ") ? $0.dropFirst() : $0 }.joined(separator: "\n")
    #expect(try workspace.load(dotenv: everything, environment: [:]).routes.count == 1)
  }

  @Test("The common keys match the table, in its order, and include every key that a gate requires")
  func reference() throws {
    let article = try ProjectFile.text("Sources/Gate/Settings/Settings.docc/Configuring.md")
    let lines = article.split(separator: "\n").map(String.init)
    let rows = Array(lines.drop { $0 != "| key | values | default | |" }.dropFirst(2).prefix { $0.hasPrefix("| `") })
    #expect((10..<30).contains(rows.count))
    #expect(rows == Self.available.map(Self.row).filter(rows.contains))
    // Those of the console over TLS stand in an article of its own.
    let required = Self.available.filter {
      $0.meaning.hasSuffix("Required.") && !$0.pattern.hasPrefix("admin.console.")
    }
    for key in required { #expect(rows.contains(Self.row(key))) }
    // The article links to the complete reference; `ReferenceTests` compares that file with the table.
    #expect(article.contains("](Configuration.md)"))
  }

  /// Returns a key's row in the article. The summary of a key without a default says whether it is off or required.
  private static func row(_ key: KeyDefinition) -> String {
    "| `\(key.pattern)` | \(key.form) | \(key.standard.map { "`\($0)`" } ?? "") | \(key.meaning) |"
  }

  @Test("The README's configuration is valid, and its error output matches the gate's")
  func readme() throws {
    let workspace = try Workspace()
    let readme = try ProjectFile.text("README.md")
    let yaml = try #require(Self.block(after: "```yaml", in: readme))
    #expect(try workspace.load(yaml: yaml, environment: [:]).warnings == [])

    let broken = yaml.replacingOccurrences(of: "AAABBBCCC1", with: "AAABBBCCC")
      .replacingOccurrences(of: "upstream:", with: "upstraem:")
    let error = try #require(throws: ConfigurationErrors.self) {
      try workspace.load(yaml: broken, environment: [:])
    }
    #expect(try #require(Self.block(after: "line and column:\n\n   ```", in: readme)) == "\(error)\n")
  }

  /// Returns the first fenced block after `opening`, without the indentation of its fence.
  private static func block(after opening: String, in text: String) -> String? {
    guard let start = text.range(of: opening + "\n"),
      let end = text.range(of: "```", range: start.upperBound..<text.endIndex)
    else { return nil }
    let lines = text[start.upperBound..<end.lowerBound].split(separator: "\n", omittingEmptySubsequences: false)
    return lines.map { $0.hasPrefix("   ") ? $0.dropFirst(3) : $0 }.joined(separator: "\n")
  }

  @Test("A truncated or damaged example never crashes the reader")
  func damage() throws {
    let text = try ProjectFile.text("config/sallyport.yaml").split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix("#") }.joined(separator: "\n")
    var outcomes: Set<Bool> = []
    let odd = Array("\"'[]{}:#&*!|>%@`\t\u{0}\u{85}-?,")
    for (number, index) in text.indices.enumerated().filter({ $0.offset % 3 == 0 }) {
      var damaged = text
      damaged.insert(odd[number % odd.count], at: index)
      for broken in [String(text[..<index]), damaged] {
        outcomes.insert(FileLayer.entries(of: broken, at: "x", in: "/", .gate).faults.isEmpty)
      }
    }
    #expect(outcomes == [true, false])
  }

  @Test(
    "Documents with unbounded growth are refused",
    arguments: [
      "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        + "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]",
      String(repeating: "[", count: 100_000),
      String(repeating: "- ", count: 100_000) + "x",
      String(repeating: "{a: ", count: 100_000),
    ])
  func growth(_ text: String) {
    #expect(!FileLayer.entries(of: text, at: "x", in: "/", .gate).faults.isEmpty)
  }
}
