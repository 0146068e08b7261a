import AuthenticatorVault
import Foundation
import TestSupport
import Testing

@Suite("authenticator on a terminal", .timeLimit(.minutes(3)))
struct TerminalTests {
  private let secret = Array("an unmistakable secret".utf8)

  private func withTerminal(_ body: (Shell, Tmux) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let shell = try Shell(folder)
      try shell.makeVault([
        VaultEntry(issuer: "GitHub", account: "alice", secret: secret, at: 1),
        VaultEntry(issuer: "Bank", account: "bob", secret: secret, kind: .hotp, at: 1),
      ])
      try await Tmux.withTerminal(in: folder) { tmux in try await body(shell, tmux) }
    }
  }

  @Test("D-065 the list searches, copies by Enter, and leaves the terminal as it was")
  func list() async throws {
    try await withTerminal { shell, tmux in
      var environment = shell.environment
      environment["AUTHENTICATOR_PASSPHRASE_FILE"] = .some(nil)
      try await tmux.start(try Places.product("authenticator"), environment)
      try await tmux.screen(with: "Passphrase of")
      try await tmux.press(Shell.passphrase, "Enter")
      let lines = try await tmux.screen(with: "GitHub: alice")
      #expect(!lines.joined().contains("horse"))
      #expect(lines[0].hasPrefix("Search:") && lines[1].hasPrefix("› Bank: bob") && lines[1].contains("counter 0"))
      #expect(lines[2].contains(/[0-9]{3} [0-9]{3} +━+╌* +[0-9]+ s/))
      try await tmux.press("g", "i", "t")
      let found = try await tmux.screen(with: "Search: git")
      #expect(found[1].hasPrefix("› GitHub: alice"))
      try await tmux.press("Enter")
      try await tmux.screen(with: "GitHub: alice: sent to the terminal")
      let clipboard = try await tmux.run("show-buffer")
      #expect(clipboard[0].wholeMatch(of: /[0-9]{6}/) != nil, "\(clipboard)")
      // Escape takes the search away; Enter then uses a counter.
      try await tmux.press("Escape")
      try await tmux.screen(with: "Bank: bob")
      try await tmux.press("Enter")
      try await tmux.screen(with: "counter 1")
      try await tmux.press("Escape")
      for _ in 0..<100 {
        if try await !tmux.run("capture-pane", "-p").joined().contains("Search:") { break }
        try await Task.sleep(for: .milliseconds(50))
      }
      let after = try await tmux.run("capture-pane", "-p")
      #expect(!after.joined().contains("GitHub"))
      let listed = try await shell.run("list --json")
      #expect(listed.output[0].contains(#""counter":1"#))
    }
  }

  @Test("a join keeps what another process writes while the passphrase is asked for")
  func join() async throws {
    try await withTerminal { shell, tmux in
      var other = shell
      other.vault = "other"
      try other.makeVault([VaultEntry(issuer: "Other", account: "", secret: secret + [1], at: 1)])
      let folder = shell.folder + "/shared"
      #expect(try await other.run("sync", folder).output == ["sent changes"])
      try await tmux.start("\(try Places.product("authenticator")) sync --join \(folder)", shell.environment)
      try await tmux.screen(with: "Passphrase of")
      #expect(try await shell.run("add New", input: Shell.secret).code == 0)
      #expect(try await shell.run("code Bank").code == 0)
      try await tmux.press(Shell.passphrase, "Enter")
      try await tmux.screen(with: "received and sent changes")
      let listed = try await shell.run("list --json")
      for text in [#""issuer":"Other""#, #""account":"New""#, #""issuer":"GitHub""#, #""counter":1"#] {
        #expect(listed.output.first?.contains(text) == true, "\(text): \(listed)")
      }
    }
  }

  @Test("a question shows a mark for what steers a terminal in the name of a file")
  func question() async throws {
    try await Places.withTemporaryFolder { folder in
      var shell = try Shell(folder)
      shell.vault = "va\u{1B}[2Jult"
      try shell.makeVault([VaultEntry(issuer: "GitHub", account: "alice", secret: secret, at: 1)])
      var environment = shell.environment
      environment["AUTHENTICATOR_PASSPHRASE_FILE"] = .some(nil)
      try await Tmux.withTerminal(in: folder) { tmux in
        try await tmux.start(try Places.product("authenticator"), environment)
        let lines = try await tmux.screen(with: "Passphrase of")
        #expect(lines.joined().contains("va\u{FFFD}[2Jult"), "\(lines)")
      }
    }
  }

  @Test("keys that arrive together are several keys")
  func together() async throws {
    try await withTerminal { shell, tmux in
      try await tmux.start(try Places.product("authenticator"), shell.environment)
      try await tmux.screen(with: "› Bank: bob")
      // One write: down, down, up, down.
      _ = try await tmux.run("send-keys", "-H", "1b", "5b", "42", "1b", "5b", "42", "1b", "5b", "41", "1b", "5b", "42")
      try await tmux.screen(with: "› GitHub: alice")
      _ = try await tmux.run("send-keys", "-H", "62", "61", "6e", "0d")
      try await tmux.screen(with: "counter 1")
      _ = try await tmux.run("send-keys", "-H", "1b", "1b")
    }
  }

  @Test("D-061 a core that a debugger writes has no secret, no passphrase and no key")
  func core() async throws {
    try await withTerminal { shell, tmux in
      try await tmux.start(try Places.product("authenticator"), shell.environment)
      try await tmux.screen(with: "GitHub: alice")
      let pane = try #require(try await tmux.run("display-message", "-p", "#{pane_pid}").first)
      let children = try await ChildProcess.run(try Places.tool("pgrep"), ["-P", pane, "-x", "authenticator"])
      let core = shell.folder + "/core"
      let gdb = try await ChildProcess.run(
        try Places.tool("gdb"), ["-batch", "-nx", "-p", try #require(children.output.first), "-ex", "gcore \(core)"])
      let bytes = try Data(contentsOf: URL(fileURLWithPath: core))
      #expect(bytes.count > 1000, "\(gdb.errors)")
      let file = try VaultFile(bytes: Data(contentsOf: URL(fileURLWithPath: shell.vaultPath + "/vault")))
      let key = try file.key(passphrase: Shell.passphrase).bytes
      for needle in [secret, Array(Shell.passphrase.utf8), key, Array("MFXCA5LO".utf8)] {
        #expect(bytes.range(of: Data(needle)) == nil)
      }
    }
  }

  @Test("T-25 D-066 no command opens a network socket")
  func network() async throws {
    try await withTerminal { shell, _ in
      for words in [["code", "alice"], ["list"], ["check"], ["edit", "alice", "--note", "x"]] {
        let trace = shell.folder + "/trace"
        let run = try await ChildProcess.run(
          try Places.tool("strace"),
          ["-f", "-e", "trace=socket,connect,bind", "-o", trace]
            + [try Places.product("authenticator")] + words, environment: shell.environment)
        #expect(run.exit == .code(0), "\(run)")
        let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n").filter {
          $0.contains("(") && !$0.contains("AF_UNIX")
        }
        #expect(calls.isEmpty, "\(calls)")
      }
    }
  }
}
