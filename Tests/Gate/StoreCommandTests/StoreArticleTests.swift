import ByteCoding
import Foundation
import SimulatedDevice
import StoreConformance
import TestSupport
import Testing

@Suite("The article's commands for the store")
struct ReadmeTests {
  @Test("The commands succeed in order, as printed", arguments: StoreKind.allCases)
  func commands(_ kind: StoreKind) async throws {
    let commands = try Self.commands()
    #expect(commands.count == 5)
    try await Places.withTemporaryFolder { folder in
      let authority = AuthorityFolder(path: folder + "/authority")
      _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now())
      let url = try await kind.newURL(in: folder)
      try """
      version: 1
      tls: { cert_file: "\(authority.serverCertificatePath)", key_file: "\(authority.serverKeyPath)" }
      routes: [{ path: /, upstream: "ws://127.0.0.1:1" }]
      store: { url: "\(url)" }
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      for command in commands {
        let answer = try await ChildProcess.run(
          Places.product("sallyport"), Array(command.dropFirst()), in: folder)
        // The tests' server does not flush, which the check reports.
        let expected: Int32 = kind == .postgres && command.contains("check") ? 1 : 0
        #expect(answer.exit == .code(expected), "\(command): \(answer.errors)")
      }
    }
  }

  /// Returns the words of each command in the block below the heading, without its comment.
  private static func commands() throws -> [[String]] {
    let lines = try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Stores.md").split(separator: "\n")
    return lines.drop { $0 != "## Commands" }.dropFirst(2).prefix { $0 != "```" }
      .map { $0.prefix { $0 != "#" }.split(separator: " ").map(String.init) }
  }
}
