import Foundation
import TestSupport
import Testing

@Suite("The article about bearer", .timeLimit(.minutes(3)))
struct DocumentTests {
  private static let article = "Sources/Tools/bearer/Bearer.docc/Bearer.md"

  /// The article's blocks of commands, in their order.
  private static func blocks() throws -> [String] {
    try ProjectFile.text(article).components(separatedBy: "```sh\n").dropFirst().map {
      $0.components(separatedBy: "\n```")[0]
    }
  }

  @Test func `each command of the article works`() async throws {
    let blocks = try Self.blocks()
    #expect(blocks.count == 9)
    try await withHostileProvider { shell, provider in
      let issuer = provider.description.issuer
      let tokens = try await ChildProcess.run(
        "/usr/bin/curl",
        [
          "-s", issuer + "/token", "-d", "grant_type=password", "-d", "client_id=public-client", "-d", "scope=openid",
          "-d", "username=\(provider.description.username)", "-d", "password=\(provider.description.password)",
        ])
      struct Answer: Decodable { let id_token: String }
      let answer = try JSONDecoder().decode(Answer.self, from: Data(tokens.output.joined().utf8))
      try shell.write(answer.id_token + "\n", to: "id-token.txt")
      for (number, block) in blocks.enumerated() {
        let isBound = block.contains("--header GET")
        try shell.configure(["work": provider.entry().filter { !isBound || $0 != "dpop: off" }])
        let login = number == 0 ? "" : "bearer login work\n"
        try shell.write("set -eo pipefail\n" + login + block + "\n", to: "script")
        var environment = shell.environment
        environment["BROWSER"] = shell.folder + "/browser"
        environment["API"] = issuer + "/userinfo"
        environment["PATH"] = Places.products + ":/usr/bin:/bin"
        let run = try await ChildProcess.run("/bin/bash", ["script"], environment: environment, in: shell.folder)
        #expect(run.exit == .code(0), "\(block): \(run.output) \(run.errors)")
        let output = run.output.joined(separator: "\n")
        // The provider of this test is on this machine, which is never reached through a proxy.
        let expected =
          [1: "eyJ", 3: "signed in", 7: "issuer   \(issuer)", 8: "passed  nonce"][number] ?? "user@example.com"
        #expect(output.contains(expected), "\(block): \(output)")
      }
    }
  }

  @Test func `help fits 80 columns, and its examples can be pasted`() async throws {
    #expect(try await ProgramHelp.faults(of: "bearer") == [])
  }

  @Test func `every command, option and code of the program is in the article, and the example is a configuration`()
    async throws
  {
    let text = try ProjectFile.text(Self.article)
    for words in try await ProgramHelp.commands(of: "bearer") {
      #expect(words.isEmpty || text.contains("bearer \(words[0])"), "\(words)")
    }
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      let example = text.components(separatedBy: "```yaml\n")[1].components(separatedBy: "```")[0]
      try shell.write(example, to: "bearer.yaml")
      let status = try await shell.run("status")
      #expect(status.code == 0 && status.output == ["work  signed out"], "\(status)")
    }
  }

  @Test func `the documents of the settings need no configuration, and are printed one at a time`() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      for (flag, start) in [("schema", "{"), ("example", "# yaml-language-server:"), ("reference", "| key | type |")] {
        let run = try await shell.run("providers check --\(flag)")
        #expect(run.code == 0 && run.output.first?.hasPrefix(start) == true, "\(run)")
      }
      let both = try await shell.run("providers check --schema --example")
      #expect(both.code == 64 && both.output.isEmpty, "\(both)")
    }
  }

  @Test("C-024 Every fault of the configuration is reported at once, with its place")
  func configuration() async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = BearerShell(folder)
      try shell.configure([
        "work": ["issuer: http://login.example.com", "client_id: ''", "scoops: [openid]"],
        "other": ["issuer: https://user@login.example.com/#x", "client_id: x"],
      ])
      let run = try await shell.run("token work")
      #expect(run.code == 78, "\(run)")
      let faults = run.errors.filter { $0.hasPrefix("error: ") }
      #expect(faults.count >= 5, "\(faults)")
      for part in ["bearer.yaml:4:", "bearer.yaml:5:", "bearer.yaml:6:", "did you mean", "bearer.yaml:8:"] {
        #expect(faults.contains { $0.contains(part) }, "\(part): \(faults)")
      }
      let missing = try await shell.run("token", environment: ["BEARER_CONFIG": folder + "/none.yaml"])
      #expect(missing.code == 78 && missing.errors.last?.hasPrefix("hint: ") == true, "\(missing)")
    }
  }
}
