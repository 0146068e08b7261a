@testable import ConfigurationEngine
import bearer
import Foundation
import OIDCClient
import TestSupport
import Testing

@Suite("The documents of bearer.yaml")
struct BearerReferenceTests {
  private let article = Result {
    try ProjectFile.text("Sources/Tools/bearer/Bearer.docc/Configuration.md")
  }

  @Test func `the article has the table that the program prints`() throws {
    #expect(try article.get().contains("\n" + SettingsDocuments.bearer.reference))
  }

  @Test func `the shipped schema and example are those that the program prints`() throws {
    #expect(try ProjectFile.text("config/bearer.schema.json") == SettingsDocuments.bearer.schema)
    #expect(try ProjectFile.text("config/bearer.yaml") == SettingsDocuments.bearer.example)
  }

  @Test func `each key appears once, with a valid example and a valid default`() {
    let keys = SettingsTable.bearer.keys
    #expect(Set(keys.map(\.pattern)).count == keys.count)
    for key in keys {
      #expect(key.summary.hasSuffix(".") && key.example != nil, "\(key.pattern)")
      for text in [key.example, key.standard].compactMap(\.self) { #expect(key.problem(text) == nil, "\(key.pattern)") }
    }
  }

  @Test func `the example of the article is valid, and its faults would be seen`() async throws {
    let example = String(try #require(try article.get().firstMatch(of: /(?s)```yaml\n(.*?)```/)).output.1)
    let (certificate, key) = try await OpenSSL.pair()
    let files = NamedFiles().with("backup.secret", "s3cret\n").with("roots.pem", try await OpenSSL.certificate())
      .with("builds.pem", try await OpenSSL.privateKey()).with("nightly.pem", certificate).with("nightly.key", key)
    let settings = try files.read(example)
    #expect(
      settings.providers.map(\.id) == ["work", "backup", "builds", "machine", "forge"]
        && settings.standard?.id == "work")
    #expect(try files.faults(example.replacing("client_id", with: "client")).count == 10)
  }

  @Test func `the shipped example is valid, also with its provider without discovery`() throws {
    let example = try ProjectFile.text("config/bearer.yaml")
    #expect(try NamedFiles().read(example).providers.map(\.id) == ["work"])
    let lines = example.split(separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0.hasPrefix("#  oauth2:") })
    let both = lines[..<start] + lines[start...].map { $0.hasPrefix("#") ? $0.dropFirst() : $0 }
    #expect(try NamedFiles().read(both.joined(separator: "\n")).providers.map(\.id) == ["work", "oauth2"])
  }

  @Test func `the schema accepts the examples, and refuses what the program refuses`() async throws {
    try await Places.withTemporaryFolder { folder in
      let example = String(try #require(try article.get().firstMatch(of: /(?s)```yaml\n(.*?)```/)).output.1)
      let files = [
        "article": example, "shipped": try ProjectFile.text("config/bearer.yaml"),
        "misspelt": "providers: { work: { isuer: x, client_id: c } }", "incomplete": "providers: { work: {} }",
        "typed": "providers: { work: { client_id: c, type: oauth2 } }",
      ]
      let names = files.keys.sorted()
      for name in names { try Data((files[name] ?? "").utf8).write(to: URL(filePath: "\(folder)/\(name).yaml")) }
      let run = try await ChildProcess.run(
        Places.tool("python3"),
        [ProjectFile.path("Tests/Gate/Programs/schema.py"), ProjectFile.path("config/bearer.schema.json")]
          + names.map { "\(folder)/\($0).yaml" })
      let accepted = zip(names, run.output).filter { $1.contains("\"accepts\"") }.map(\.0)
      #expect(run.exit == .code(0) && accepted == ["article", "shipped"], "\(run)")
    }
  }
}
