import Foundation
import TestSupport
import Testing

@Suite("bearer refreshes once, however many ask", .timeLimit(.minutes(20)))
struct RefreshTests {
  /// Signs in so that the next call of `token` refreshes.
  private func signInBriefly(_ shell: BearerShell, _ provider: HostileProvider) async throws {
    try await provider.control(#"{"reset": true, "access_token_lifetime": 1}"#)
    #expect(try await shell.signIn(provider).code == 0)
    try await Task.sleep(for: .milliseconds(1100))
    try await provider.control(#"{"access_token_lifetime": 3600}"#)
  }

  @Test("C-012 A hundred processes at expiry: one request, and all have the token")
  func hundred() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      let processes = try (0..<100).map { _ in try shell.start("token work") }
      var tokens: Set<String> = []
      for process in processes {
        #expect(try await process.exit() == .code(0), "\(process.errors.lines)")
        tokens.formUnion(try await process.output.all())
      }
      #expect(tokens.count == 1)
      #expect(try await provider.control().refreshes == 1)
    }
  }

  @Test("C-012 Twenty processes at expiry of a token that lives for a minute: one request, and all have the token")
  func shortLifetime() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      try await provider.control(#"{"access_token_lifetime": 60}"#)
      let processes = try (0..<20).map { _ in try shell.start("token work") }
      var tokens: Set<String> = []
      for process in processes {
        #expect(try await process.exit() == .code(0), "\(process.errors.lines)")
        tokens.formUnion(try await process.output.all())
      }
      #expect(tokens.count == 1)
      #expect(try await provider.control().refreshes == 1)
    }
  }

  @Test("C-043 A lost answer is not repeated; the next call tries once, and a refusal deletes nothing")
  func lostAnswer() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      try await provider.control(#"{"fault": "token_answer_lost"}"#)
      let lost = try await shell.run("token work")
      #expect(lost.code == 75 && lost.fault == "refresh_uncertain", "\(lost)")
      #expect(try await provider.control().refreshes == 1)
      #expect(
        try await shell.run("status").output
          == ["work  uncertain: the answer to a refresh was lost; the next call tries once  user 1"])
      try await provider.control(#"{"fault": null}"#)
      let refused = try await shell.run("token work")
      #expect(refused.code == 77 && refused.fault == "answer_was_lost", "\(refused)")
      // Refused is refused: no further request.
      #expect(try await shell.run("token work").fault == "answer_was_lost")
      #expect(try await provider.control().refreshes == 2)
      #expect(try await shell.signIn(provider).code == 0)
      #expect(try await shell.run("token work").code == 0)
    }
  }

  @Test("C-045 A refused refresh token ends the sign-in, and is not sent again")
  func refused() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      try await provider.control(#"{"fault": "invalid_grant"}"#)
      #expect(try await shell.run("token work").fault == "sign_in_needed")
      #expect(try await shell.run("token work").fault == "sign_in_needed")
      #expect(try await provider.control().refreshes == 1)
    }
  }

  @Test func `another user in a refreshed ID token is refused`() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      try await provider.control(#"{"fault": "refresh_other_subject"}"#)
      let other = try await shell.run("token work")
      #expect(other.code == 75 && other.errors.joined().contains("sub is missing, or another user"), "\(other)")
    }
  }

  @Test func `a provider that asks to wait is left alone until then`() async throws {
    try await withHostileProvider { shell, provider in
      try await signInBriefly(shell, provider)
      try await provider.control(#"{"fault": "token_429_retry_after"}"#)
      let busy = try await shell.run("token work")
      #expect(busy.code == 75 && busy.fault == "provider_busy", "\(busy)")
      try await provider.control(#"{"fault": null}"#)
      try await Task.sleep(for: .milliseconds(1100))
      #expect(try await shell.run("token work").code == 0)
    }
  }

  @Test("C-012 and C-053 A token that a service rejected is renewed once, however many say so")
  func rejected() async throws {
    try await withHostileProvider { shell, provider in
      try await shell.signIn(provider)
      let old = try await shell.run("token work").output[0]
      try shell.write(old + "\n", to: "old")
      let processes = try (0..<10).map { _ in try shell.start("token work --rejected old") }
      var tokens: Set<String> = []
      for process in processes {
        #expect(try await process.exit() == .code(0), "\(process.errors.lines)")
        tokens.formUnion(try await process.output.all())
      }
      #expect(tokens.count == 1 && !tokens.contains(old))
      #expect(try await provider.control().refreshes == 1)
    }
  }

  @Test("T-30 No account is logged out by a process that was killed, unless the answer was lost, which is said")
  func killed() async throws {
    let isWhole = ProcessInfo.processInfo.environment["SALLYPORT_TEST_PROVIDERS"] == "1"
    let (rounds, processes) = isWhole ? (200, 100) : (20, 8)
    try await withHostileProvider { shell, provider in
      var random = SeededGenerator(seed: 22)
      var (renewed, lost) = (0, 0)
      try await provider.control(#"{"delay_ms": 60}"#)
      try await shell.signIn(provider)
      for round in 0..<rounds {
        // A service has rejected the token, so that it must be renewed now.
        try shell.write(try await shell.run("token work").output.joined() + "\n", to: "old")
        let isAnswerLost = round % 2 == 0
        let before = try await provider.control(#"{"hold_tokens": \#(isAnswerLost)}"#)
        let group = try (0..<processes).map { _ in try shell.start("token work --rejected old") }
        let victim: ChildProcess
        if isAnswerLost {
          // The one whose request has arrived. It is stopped until the provider has answered, and never reads that.
          try await provider.wait("a request for tokens") { $0.tokenRequests > before.tokenRequests }
          victim = try #require(Self.owner(among: group))
          victim.send(SIGSTOP)
          try await provider.control(#"{"hold_tokens": false}"#)
          try await provider.wait("an answer") { $0.refreshes > before.refreshes }
        } else {
          try await Task.sleep(for: .milliseconds(Int.random(in: 5...400, using: &random)))
          victim = try #require(group.randomElement(using: &random))
        }
        victim.send(SIGKILL)
        _ = try await victim.exit()
        for process in group where process !== victim {
          let exit = try await process.exit(within: .seconds(120))
          let fault = BearerShell.Result(code: nil, output: [], errors: try await process.errors.all()).fault
          #expect(exit == .code(0) || fault == "answer_was_lost", "\(exit) \(fault ?? "")")
        }
        let next = try await shell.run("token work --rejected old")
        let after = try await provider.control()
        // Two requests at most: that of the process that was killed, and the one try after it.
        #expect(after.refreshes - before.refreshes <= 2)
        if next.code == 0 {
          renewed += 1
        } else {
          #expect(next.fault == "answer_was_lost", "\(next)")
          // The provider had answered a request whose process is gone.
          #expect(after.refreshes > before.refreshes)
          lost += 1
          #expect(try await shell.signIn(provider).code == 0)
        }
      }
      print("rounds with a kill: \(renewed) renewed, \(lost) with a lost answer")
      #expect(renewed + lost == rounds && lost >= rounds / 2 && renewed > rounds / 4)
    }
  }

  /// The process that holds the account's lock, from the kernel's table.
  private static func owner(among processes: [ChildProcess]) -> ChildProcess? {
    let table = (try? String(contentsOfFile: "/proc/locks", encoding: .utf8)) ?? ""
    let owners = table.split(separator: "\n").filter { $0.contains("FLOCK") && !$0.contains("->") }
      .compactMap { $0.split(separator: " ").dropFirst(4).first.flatMap { Int32($0) } }
    return processes.first { owners.contains($0.id) }
  }
}
