import ByteCoding
import Foundation
import SimulatedDevice
import TestSupport
import Testing

/// The blocks of the article about attestations and assertions by hand.
private struct PrimitiveArticle {
  struct Block {
    let language: String
    let text: String
  }

  let blocks: [Block]

  init() throws {
    let article = try ProjectFile.text("Sources/App/AttestClient/AttestClient.docc/Primitives.md")
    blocks = article.matches(of: #/(?m)^```(\w*)\n((?:.*\n)*?)```$/#).map {
      Block(language: String($0.output.1), text: String($0.output.2))
    }
  }

  /// The commands of the pipeline, without the line that names gate and folder, and what they print.
  func pipeline() throws -> (commands: String, output: String) {
    let end = try #require(blocks.firstIndex { $0.text.contains("signCount: 1\n") })
    let part = blocks[...end]
    let commands = part.filter { $0.language == "sh" && !$0.text.hasPrefix("export GATE=") }
    #expect(commands.count == 3)
    return (commands.map(\.text).joined(), part.filter { $0.language.isEmpty }.map(\.text).joined())
  }

  /// The client in Python.
  func client() throws -> String { try #require(blocks.first { $0.language == "python" }).text }
}

extension GateSetup {
  /// `host:port`.
  fileprivate var host: String { url.replacing("wss://", with: "").replacing("/", with: "") }

  /// Runs a program of the system in the user's folder, where the programs of this package are found.
  fileprivate func run(_ tool: String, _ arguments: [String], folder: String? = nil) async throws -> Outcome {
    var environment = place.environment
    environment["PATH"] = Places.products + ":/usr/bin:/bin"
    environment["GATE"] = "https://" + host
    environment["DIR"] = folder ?? authority
    let process = try ChildProcess(Places.tool(tool), arguments, environment: environment, in: place.folder)
    defer { process.kill() }
    process.closeInput()
    let exit = try await process.exit(within: .seconds(120))
    return Outcome(
      status: try #require(exit.code), output: try await process.output.text(),
      errors: try await process.errors.text())
  }
}

@Suite("The article about attestations and assertions by hand", .serialized)
struct PrimitiveArticleTests {
  @Test func `the pipeline prints what the article says: one flipped byte is refused by its rules`() async throws {
    let (commands, output) = try PrimitiveArticle().pipeline()
    let setup = try await GateSetup()
    let outcome = try await setup.run("bash", ["-c", commands])
    // A request without an error ends its line with a blank.
    #expect(outcome.output.replacing(" \n", with: "\n") == output, "\(outcome.errors)")
    #expect(outcome.errors == "")
    // The same commands, which write a byte that is there already.
    let unchanged = commands.replacing(#"printf '\001'"#, with: #"printf '\000'"#)
    #expect(unchanged != commands)
    let twin = try await setup.run("bash", ["-c", unchanged])
    #expect(twin.output.contains("signCount: 0\nregister 200 \n") && !twin.output.contains("refused by"))
  }

  @Test func `the client in Python registers a key and opens a socket`() async throws {
    let client = try PrimitiveArticle().client()
    #expect(client.split(separator: "\n", omittingEmptySubsequences: false).count <= 61)
    let setup = try await GateSetup()
    let path = setup.place.folder + "/client.py"
    try Data(client.utf8).write(to: URL(fileURLWithPath: path))
    let outcome = try await setup.run("python3", [path, setup.host, setup.authority, "by hand: 1 ✓"])
    #expect(outcome == Outcome(status: 0, output: "by hand: 1 ✓\n", errors: ""))
    // The device of an authority that the gate does not trust.
    let other = setup.place.folder + "/other"
    _ = try AuthorityFolder(path: other).loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
    let root = try Data(contentsOf: URL(fileURLWithPath: setup.authority + "/tls-ca.pem"))
    try root.write(to: URL(fileURLWithPath: other + "/tls-ca.pem"))
    let refused = try await setup.run("python3", [path, setup.host, other, "hello"], folder: other)
    #expect(refused.status == 1 && refused.output == "")
  }
}
