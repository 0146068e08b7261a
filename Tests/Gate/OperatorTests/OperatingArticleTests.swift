import Foundation
import GateProcesses
import PostgresServers
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("The articles' commands for operators", .serialized, .timeLimit(.minutes(5)))
struct ReadmeTests {
  /// Returns the blocks of shell commands in a section of an article.
  private static func blocks(of title: String, in article: String) throws -> [String] {
    let text = try ProjectFile.text("Sources/Gate/GateService/GateService.docc/\(article).md")
    let section = try #require(text.components(separatedBy: "\n## \(title)\n").dropFirst().first)
    let own = try #require(section.components(separatedBy: "\n## ").first)
    return own.components(separatedBy: "```sh\n").dropFirst().map {
      String($0.prefix(upTo: $0.range(of: "```")?.lowerBound ?? $0.endIndex))
    }
  }

  /// Runs `text` unchanged in the gate's folder, and stops at the first command that fails.
  private func run(_ text: String, at bench: AdminBench, _ variables: [String: String]) async throws {
    let script = "set -eu\nPATH=\"\(Places.products):$PATH\"\nsystemctl() { :; }\n" + text
    let (exit, _, errors) = try await ChildProcess.run(
      "/bin/sh", ["-c", script], environment: variables, in: bench.gate.folder.path)
    #expect(exit == .code(0), "\(errors)")
  }

  @Test("The commands change and stop a gate as printed")
  func life() async throws {
    let blocks = try Self.blocks(of: "Changing and stopping a running gate", in: "Operating")
    try #require(blocks.count == 2)
    try await AdminBench.serving { bench in
      try await run(blocks[1], at: bench, [:])
      try await run(blocks[0], at: bench, [:])
      #expect(try await bench.gate.process.exit(within: .seconds(30)) == .code(0))
    }
  }

  @Test("The commands manage keys and sessions as printed")
  func keys() async throws {
    let blocks = try [
      ("Keys and sessions", "Operating"), ("Readiness", "Observability"), ("Move from SQLite to PostgreSQL", "Stores"),
    ].flatMap { try Self.blocks(of: $0.0, in: $0.1) }
    try #require(blocks.count == 4)
    let url = try await PostgresServer.shared().newURL()
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let (kept, _) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      let session = try #require(socket.response.headers.first("X-Request-Id"))
      try await run(blocks[0], at: bench, ["KEY": hash, "SESSION": session])
      #expect(try await socket.ending(since: .now).code == 1001)
      for block in blocks[1...2] {
        try await run(
          block.replacingOccurrences(of: "/run/sallyport/admin.sock", with: bench.socket), at: bench, [:])
      }
      try await run(blocks[3], at: bench, ["POSTGRES": url])
      let moved = try await sallyport(["keys", "show", kept.keyID, "--store", url])
      #expect(moved.status == 0)
    }
  }
}
