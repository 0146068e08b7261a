import Foundation
import TestSupport
import Testing

@Suite("bearer keeps secrets", .timeLimit(.minutes(3)))
struct SecrecyTests {
  @Test("T-32, C-022, C-042, C-057 No token, code or password is in store, log, process list or core file")
  func run() async throws {
    try await withHostileProvider { shell, provider in
      var printed: [String] = []
      var secrets: Set<String> = [provider.description.password]
      let login = try await shell.run(
        "login --debug --username user work", input: provider.description.password + "\n")
      #expect(login.code == 0 && login.errors.contains { $0.hasPrefix("debug: POST ") }, "\(login)")
      printed += login.output + login.errors
      secrets.insert(try await shell.run("token work").output[0])
      for _ in 0..<2 {
        let old = try await shell.run("token work").output[0]
        let token = try await shell.run("token --debug work --rejected -", input: old + "\n")
        secrets.insert(token.output[0])
        printed += token.errors
      }
      let browser = try await shell.browse("login --debug --timeout 90 work")
      #expect(browser.code == 0, "\(browser)")
      printed += browser.errors + (try await shell.run("status --json").output)
      // Every refresh token that the provider saw.
      secrets.formUnion(try await provider.control().refresh_tokens.keys)
      try await provider.control(#"{"fault": "invalid_grant"}"#)
      printed += try await shell.browse("login --debug --timeout 90 work").errors
      printed += try await shell.run("token --debug work --rejected -", input: "x\n").errors
      printed += try await shell.run("logout --debug work").errors
      #expect(secrets.count >= 5)
      let (text, files) = (printed.joined(separator: "\n"), try Self.content(of: shell.folder + "/store"))
      for secret in secrets {
        #expect(!text.contains(secret))
        #expect(files.range(of: Data(secret.utf8)) == nil)
      }
      // Of a form's fields, only the names are in the log.
      #expect(text.contains(" code=... code_verifier=... "))
      #expect(text.matches(of: /[ ?&](code|code_verifier|refresh_token|password)=(?!\.\.\. )/).isEmpty)
    }
  }

  @Test func `a process that waits for the browser has nothing in its arguments, nor in a core file`() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let token = try await shell.run("token work").output[0]
      try shell.write(token + "\n", to: "old")
      let before = try await provider.control(#"{"hold_tokens": true}"#)
      let waiting = try shell.start("token work --rejected old")
      // It has read the tokens, and waits for the provider.
      try await provider.wait("a request for tokens") { $0.tokenRequests > before.tokenRequests }
      #expect(!waiting.hasEnded)
      let arguments = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(waiting.id)/cmdline"))
      #expect(arguments.range(of: Data(token.utf8)) == nil && !arguments.isEmpty)
      let core = shell.folder + "/core"
      let gdb = try await ChildProcess.run(
        try Places.tool("gdb"), ["-batch", "-nx", "-p", "\(waiting.id)", "-ex", "gcore \(core)"])
      let bytes = try Data(contentsOf: URL(fileURLWithPath: core))
      #expect(bytes.count > 1000, "\(gdb.errors)")
      #expect(bytes.range(of: Data(token.utf8)) == nil)
      #expect(bytes.range(of: try Data(contentsOf: URL(fileURLWithPath: shell.folder + "/store/key"))) == nil)
    }
  }

  private static func content(of folder: String) throws -> Data {
    try FileManager.default.subpathsOfDirectory(atPath: folder).reduce(into: Data()) { data, name in
      data += (try? Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))) ?? Data()
    }
  }
}
