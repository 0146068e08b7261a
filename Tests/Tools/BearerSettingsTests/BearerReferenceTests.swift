import bearer
import OIDCClient
import TestSupport
import Testing

@Suite("The reference of bearer.yaml")
struct BearerReferenceTests {
  private let article = Result {
    try ProjectFile.text("Sources/Tools/bearer/Bearer.docc/Configuration.md")
  }

  @Test func `the tables contain each key, in order, and no other`() throws {
    let keys = try article.get().matches(of: /(?m)^\| `(\w+)` \|/).map { String($0.output.1) }
    #expect(keys == BearerSettings.topKeys + BearerSettings.providerKeys)
  }

  @Test func `the example is valid, and its faults would be seen`() async throws {
    let example = String(try #require(try article.get().firstMatch(of: /(?s)```yaml\n(.*?)```/)).output.1)
    let (certificate, key) = try await OpenSSL.pair()
    let files = NamedFiles().with("/etc/b/./backup.secret", "s3cret\n")
      .with("/etc/b/./roots.pem", try await OpenSSL.certificate())
      .with("/etc/b/./builds.pem", try await OpenSSL.privateKey())
      .with("/etc/b/./nightly.pem", certificate).with("/etc/b/./nightly.key", key)
    let settings = try files.read(example)
    #expect(
      settings.providers.map(\.id) == ["work", "backup", "builds", "machine", "forge"]
        && settings.standard?.id == "work")
    #expect(files.faults(example.replacing("client_id", with: "client")).count == 10)
  }
}
