import ByteCoding
import Cryptography
import Foundation
import Glibc
import SimulatedDevice
import Testing

@Suite("attest inspect")
struct InspectCommandTests {
  private struct Tree: Decodable {
    struct Part: Decodable {
      let offset, header, length: Int
      let name: String
      let value, meaning: String?
      let parts: [Part]?

      /// This part and all below it.
      var all: [Part] { [self] + (parts ?? []).flatMap(\.all) }
    }
    struct Fault: Decodable {
      let offset: Int
      let reason: String
    }
    let kind: String
    let size: Int
    let base64: Bool
    let parts: [Part]
    let faults: [Fault]
  }

  /// An assertion over 32 bytes, whose counter is 7.
  private func assertion() throws -> [UInt8] {
    try AssertionMint(app: SimulatedApp(appID: "SALLYPORT1.com.example.app"))
      .assertion(by: P256PrivateKey(), clientDataHash: SHA256.hash([1]), signCount: 7)
  }

  private func file(_ place: Workplace, _ bytes: [UInt8]) throws -> String {
    let path = place.folder + "/input"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test func `lines and JSON show the same tree, from a file and from standard input`() async throws {
    let place = try Workplace()
    let bytes = try assertion()
    let path = try file(place, bytes)
    let text = try await place.run(["inspect", path])
    #expect(text.status == 0 && text.errors == "")
    let lines = text.output.split(separator: "\n")
    #expect(lines.first == "an assertion of App Attest, \(bytes.count) bytes")
    let offset = bytes.count - 4
    #expect(
      lines.last?.split(separator: " ").prefix(5).map(String.init) == ["\(offset)", "0", "4", "signCount:", "7"])

    let json = try await place.run(["inspect", "-", "--json"], input: Base64.encode(bytes) + "\n")
    let tree = try JSONDecoder().decode(Tree.self, from: Data(json.output.utf8))
    #expect(tree.kind == "assertion" && tree.size == bytes.count && tree.base64 && tree.faults.isEmpty)
    let parts = tree.parts.flatMap(\.all)
    #expect(parts.count == lines.count - 1)
    let counter = try #require(parts.last)
    #expect(counter.name == "signCount" && counter.value == "7" && counter.offset == offset && counter.length == 4)
    #expect(counter.meaning?.hasPrefix("the counter") == true)
  }

  @Test func `a broken encoding exits with 65 after the tree, and its offset is named`() async throws {
    let place = try Workplace()
    let bytes = try assertion()
    for arguments in [[], ["--json"]] {
      let outcome = try await place.run(["inspect", try file(place, bytes.dropLast(3))] + arguments)
      #expect(outcome.status == 65 && outcome.output.contains("ECDSA-Sig-Value"))
      #expect(outcome.errorLines.count == 2 && outcome.errorLines[0].contains("/input: byte "), "\(outcome.errors)")
    }
    let deep = try await place.run(["inspect", try file(place, [UInt8](repeating: 0x81, count: 10_000))])
    #expect(deep.status == 65)
    #expect(
      deep.errorLines.first
        == "error: \(place.folder)/input: byte 64: nested deeper than 64 levels: the rest is not shown")
    #expect(deep.output.split(separator: "\n").count == 66)
  }

  @Test func `garbage and 64 MiB are refused with an offset, and a private key without its content`() async throws {
    let place = try Workplace()
    let garbage = try await place.run(["inspect", try file(place, [0xFE, 0x00, 0x01])])
    #expect(garbage.status == 65 && garbage.output == "" && garbage.errorLines.count == 2)
    #expect(garbage.errorLines.first?.contains("byte 0: neither CBOR") == true)
    let large = try file(place, [])
    #expect(truncate(large, 64 << 20) == 0)
    let long = try await place.run(["inspect", large])
    #expect(long.status == 65 && long.output == "")
    #expect(
      long.errorLines.first == "error: \(large): longer than 1 MiB: no further than byte 1048576", "\(long.errors)")
    let key = try P256PrivateKey().pkcs8PEM
    let secret = try await place.run(["inspect", "-"], input: key)
    #expect(secret.status == 65 && secret.output == "")
    #expect(secret.errorLines.first == "error: standard input: it has a private key, which is not shown")
    #expect(key.split(separator: "\n").filter { $0.count > 40 }.allSatisfy { !secret.errors.contains($0) })
    let missing = try await place.run(["inspect", "/nowhere/input"])
    #expect(missing.status == 66 && missing.output == "")
  }

  @Test func `text from a stranger cannot steer the terminal`() async throws {
    let place = try Workplace()
    let hostile = Array("\u{1B}[31m\u{202E}\n".utf8)
    let outcome = try await place.run(["inspect", try file(place, [0x60 | UInt8(hostile.count)] + hostile)])
    #expect(outcome.status == 0)
    #expect(outcome.output.unicodeScalars.allSatisfy { $0 == "\n" || ($0.value >= 0x20 && $0.value != 0x202E) })
    #expect(outcome.output.split(separator: "\n").count == 2)
  }
}
