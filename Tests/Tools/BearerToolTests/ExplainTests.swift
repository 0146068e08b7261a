import Foundation
import TestSupport
import Testing

@Suite("bearer explain", .timeLimit(.minutes(2)))
struct ExplainTests {
  /// A token and its keys, from Python's PyJWT: valid in January 2027.
  private struct Minted: Decodable {
    struct Case: Decodable {
      let name: String
      let code: String?
      let token: String
      let keys: String
    }
    let cases: [Case]
  }

  private func withToken(_ name: String, _ body: (BearerShell) async throws -> Void) async throws {
    let run = try await ChildProcess.run(
      "/usr/bin/python3", [ProjectFile.path("Tests/App/Programs/id_tokens.py")])
    let minted = try JSONDecoder().decode(Minted.self, from: Data(run.output.joined().utf8))
    let item = try #require(minted.cases.first { $0.name == name })
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      try shell.configure([
        "work": ["issuer: https://login.example.com", "client_id: app"],
        "other": ["issuer: https://other.example", "client_id: app"],
      ])
      try shell.write(item.token + "\n", to: "token")
      try shell.write(item.keys, to: "keys")
      try await body(shell)
    }
  }

  @Test func `every rule is shown, and the ones that do not hold have their code`() async throws {
    // The token is of the future, so that its issue time is wrong.
    try await withToken("RS256") { shell in
      let explained = try await shell.run("explain --keys keys token")
      #expect(explained.code == 1 && explained.output.count == 13, "\(explained)")
      #expect(explained.output[0] == "alg RS256, key rsa, provider work")
      #expect(explained.output.filter { $0.hasPrefix("FAILED") }.count == 1)
      #expect(explained.output.contains { $0.contains("(wrong_issue_time: iat is in the future") })
      #expect(explained.output.contains("passed  the signature is that of a key of the provider"))
      #expect(explained.errors == ["error: 1 of 12 rules do not hold"])
      let wrong = try await shell.run("explain --keys keys --nonce other --json token")
      #expect(wrong.output[0].contains(#""code":"wrong_nonce""#), "\(wrong)")
      // By standard input, and from another provider's point of view.
      let token = try String(contentsOfFile: shell.folder + "/token", encoding: .utf8)
      let other = try await shell.run("explain --provider other --keys keys", input: token)
      #expect(other.code == 1 && other.output.contains { $0.contains("wrong_issuer") }, "\(other)")
    }
  }

  @Test func `what is no token is refused, and a token in the arguments is warned of`() async throws {
    try await withToken("RS256") { shell in
      for text in ["", "abc", "a.b.c"] {
        let explained = try await shell.run("explain --keys keys", input: text + "\n")
        #expect(explained.code == 65 && explained.fault == "token_malformed", "\(explained)")
      }
      for line in [
        "explain --keys keys --access-token -", "explain --keys -", "explain --keys - --access-token - token",
      ] {
        let twice = try await shell.run(line, input: "abc\n")
        #expect(twice.code == 64 && twice.errors[0].contains("standard input can be one of"), "\(line): \(twice)")
      }
      let token = try String(contentsOfFile: shell.folder + "/token", encoding: .utf8).split(separator: "\n")[0]
      let explained = try await shell.run("explain --keys keys", String(token))
      #expect(explained.code == 1 && explained.errors[0].hasPrefix("warning: other users can see"), "\(explained)")
    }
  }
}
