import Foundation
import TestSupport
import Testing

@Suite("bearer on a terminal", .timeLimit(.minutes(2)))
struct TerminalTests {
  @Test("C-055 The terminal asks, hides the password, shows the error and what to do, and then the result")
  func password() async throws {
    try await withHostileProvider { shell, _ in
      try await Tmux.withTerminal(in: shell.folder) { tmux in
        let bearer = try Places.product("bearer")
        try await tmux.start(
          "sh -c '\(bearer) login --username user work; \(bearer) login --username user work'", shell.environment)
        try await tmux.screen(with: "password of user:")
        try await tmux.press("wrong", "Enter")
        try await tmux.screen(with: "error: invalid_grant: work: the provider refuses")
        // The second program has asked.
        let asked = try await tmux.screen(with: "password of user:", times: 2)
        #expect(asked.contains { $0.contains("hint: begin again: `bearer login work`") }, "\(asked)")
        #expect(!asked.contains { $0.contains("wrong") && $0.contains("password of") }, "\(asked)")
        try await tmux.press("password-of-the-user-42", "Enter")
        let screen = try await tmux.screen(with: "signed in at work as user 1")
        #expect(!screen.contains { $0.contains("of-the-user") }, "\(screen)")
      }
    }
  }

  @Test("An interrupt at the question for a password leaves a terminal that shows what is typed")
  func interrupt() async throws {
    try await withHostileProvider { shell, _ in
      try await Tmux.withTerminal(in: shell.folder) { tmux in
        let bearer = try Places.product("bearer")
        try await tmux.start("sh -c 'trap : INT; \(bearer) login --username user work; stty -a'", shell.environment)
        try await tmux.screen(with: "password of user:")
        try await tmux.press("C-c")
        let modes = try await tmux.screen(with: "icanon")
        #expect(modes.contains { $0.contains(" echo ") }, "\(modes)")
      }
    }
  }

  @Test(
    "A question that gets no answer in time ends the command, and leaves a terminal that shows what is typed",
    arguments: ["--paste", "--username user"])
  func noAnswer(option: String) async throws {
    try await withHostileProvider { shell, _ in
      try await Tmux.withTerminal(in: shell.folder) { tmux in
        let bearer = try Places.product("bearer")
        try await tmux.start("sh -c '\(bearer) login --timeout 3 \(option) work; stty -a'", shell.environment)
        _ = try await tmux.run("resize-window", "-x", "2000", "-y", "20")
        let modes = try await tmux.screen(with: " icanon ")
        #expect(modes.contains { $0.contains("error: no_answer: no ") }, "\(modes)")
        #expect(modes.contains { $0.contains(" echo ") }, "\(modes)")
      }
    }
  }

  @Test("A pasted address may be longer than the lines that a terminal edits, and its end can be corrected")
  func longAddress() async throws {
    try await withHostileProvider { shell, provider in
      try await Tmux.withTerminal(in: shell.folder) { tmux in
        try await tmux.start("sh -c '\(try Places.product("bearer")) login --paste work; stty -a'", shell.environment)
        _ = try await tmux.run("resize-window", "-x", "2000", "-y", "20")
        let screen = try await tmux.screen(with: "paste it here:")
        let address = try #require(screen.compactMap { $0.contains("state=") ? URLComponents(string: $0) : nil }.last)
        let state = try #require(address.queryItems?.first { $0.name == "state" }?.value)
        let answer =
          "http://127.0.0.1:1/callback?pad=\(String(repeating: "x", count: 5000))&iss=\(provider.description.issuer)"
          + "&error=access_denied&state=\(state)"
        for part in stride(from: 0, to: answer.count, by: 500) {
          _ = try await tmux.run("send-keys", "-l", String(answer.dropFirst(part).prefix(500)))
        }
        try await tmux.press("x", "BSpace", "Enter")
        let modes = try await tmux.screen(with: " icanon ")
        #expect(modes.contains { $0.contains("error: access_denied: work: ") }, "\(modes)")
        #expect(modes.contains { $0.contains(" echo ") }, "\(modes)")
      }
    }
  }

  @Test("C-056 Each step is text without color, reached by the keyboard, and a QR code has its address beside it")
  func device() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"pending": 1}"#)
      try await Tmux.withTerminal(in: shell.folder) { tmux in
        _ = try await tmux.start("\(try Places.product("bearer")) login --device work", shell.environment)
        _ = try await tmux.run("resize-window", "-x", "100", "-y", "50")
        let waiting = try await tmux.screen(with: "and enter ", styled: true)
        #expect(waiting.contains { $0.contains("\(provider.description.issuer)/device") })
        let screen = try await tmux.screen(with: "signed in at work", styled: true)
        #expect(!screen.contains { $0.contains("\u{1B}[3") }, "\(screen)")
      }
    }
  }
}
