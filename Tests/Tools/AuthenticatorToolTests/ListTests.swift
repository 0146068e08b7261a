import AuthenticatorVault
import Foundation
import Testing

@testable import authenticator

@Suite struct ListTests {
  private static let secret = Array("12345678901234567890".utf8)
  private let entries = [
    VaultEntry(issuer: "Bank", account: "bob", secret: [1, 2, 3], kind: .hotp, counter: 4, at: 1),
    VaultEntry(issuer: "GitHub", account: "alice", secret: secret, tags: ["work"], at: 1),
    VaultEntry(issuer: "Gitea", account: "alice", secret: secret, digits: 8, at: 1),
    VaultEntry(issuer: "Old", account: "", secret: [9], kind: .other("motp"), at: 1),
  ]

  private func time(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

  @Test("D-065 a code stands in groups, with a bar, its seconds, and in red for the last five")
  func frame() {
    func lines(_ seconds: Double, isColored: Bool = true) -> [String] {
      ListFrame(entries: entries, at: time(seconds), columns: 80, isColored: isColored).lines
    }
    #expect(
      lines(59, isColored: false) == [
        "Bank: bob      counter 4", "GitHub: alice  287 082     ━╌╌╌╌╌╌╌╌╌  1 s",
        "Gitea: alice   9428 7082   ━╌╌╌╌╌╌╌╌╌  1 s", "Old            kind not known",
      ])
    #expect(lines(30)[1] == "GitHub: alice  287 082     ━━━━━━━━━━ 30 s")
    #expect(lines(54)[1] == "GitHub: alice  287 082     ━━╌╌╌╌╌╌╌╌  6 s")
    #expect(lines(55)[1] == "GitHub: alice  \u{1B}[31m287 082     ━━╌╌╌╌╌╌╌╌  5 s\u{1B}[39m")
    #expect(lines(59.999)[1].hasSuffix("1 s\u{1B}[39m") && lines(60)[1].hasSuffix("30 s"))
  }

  @Test func `a long name is shortened, and wide characters count twice`() {
    #expect(ListFrame.padded("abcdef", to: 4) == "abc…" && ListFrame.padded("ab", to: 4) == "ab  ")
    #expect(ListFrame.width("銀行") == 4 && ListFrame.padded("銀行", to: 3) == "銀…")
    let entry = VaultEntry(issuer: String(repeating: "x", count: 200), account: "", secret: [1], at: 1)
    for line in ListFrame(entries: [entry], at: time(0), columns: 60, isColored: false).lines {
      #expect(ListFrame.width(line) <= 60)
    }
    #expect(ListFrame.grouped("12345") == "12345" && ListFrame.grouped("1234567") == "123 456 7")
  }

  @Test("D-052 D-065 typing searches names and groups, and Enter takes the marked entry")
  func keys() {
    var state = ListState(entries: entries)
    #expect(state.press([0x0D]) == .copy(entries[0]))
    for byte in Array("GIT".utf8) { #expect(state.press([byte]) == .none) }
    #expect(state.found.map(\.issuer) == ["GitHub", "Gitea"])
    _ = state.press(Array("\u{1B}[B".utf8))
    #expect(state.press([0x0D]) == .copy(entries[2]))
    _ = state.press(Array("\u{1B}[B".utf8))
    #expect(state.selected == 1)
    _ = state.press(Array("\u{1B}[A".utf8))
    _ = state.press(Array("\u{1B}OA".utf8))
    #expect(state.selected == 0)
    // A search for several words, and a group.
    _ = state.press(Array(" work".utf8))
    #expect(state.found.map(\.issuer) == ["GitHub"])
    _ = state.press([0x7F])
    #expect(state.query == "GIT wor")
    // An unknown key changes nothing.
    _ = state.press(Array("\u{1B}[5~".utf8))
    #expect(state.query == "GIT wor")
    #expect(state.press([0x1B]) == .none && state.query.isEmpty)
    #expect(state.press([0x1B]) == .leave && state.press([0x03]) == .leave)
    _ = state.press(Array("nothing has this".utf8))
    #expect(state.press([0x0D]) == .none)
    #expect(state.screen(at: time(0), rows: 10, columns: 80, isColored: false)[1].contains("No entry"))
    #expect(ListState(entries: []).screen(at: time(0), rows: 10, columns: 80, isColored: false)[1].contains("empty"))
  }

  @Test func `the code of a counter is whole at any width, because it is used up`() {
    let names = ["Bank", String(repeating: "a long name ", count: 400), "銀行銀行銀行銀行銀行銀行銀行銀行", "e\u{301}\u{9B}2J"]
    for (name, kind) in names.flatMap({ [($0, VaultEntry.Kind.hotp), ($0, .totp(period: 30))] }) {
      let entry = VaultEntry(issuer: name, account: "bob", secret: [1, 2, 3], kind: kind, digits: 10, at: 1)
      var state = ListState(entries: [entry])
      for outcome in ["copied", "not copied: the program of the clipboard ended with 1"] {
        state.message = ListState.result(of: entry, code: "1234567890", outcome)
        for columns in [20, 40, 80] {
          let last = state.screen(at: time(0), rows: 10, columns: columns, isColored: false).last ?? ""
          #expect(last.hasPrefix("12345 67890  ") == (kind == .hotp), "\(columns): \(last)")
          #expect(ListFrame.width(last) <= columns && !last.contains("\u{9B}"), "\(columns): \(last)")
        }
      }
    }
    let short = ListState.result(of: entries[0], code: "755224", "copied")
    #expect(short == "755 224  Bank: bob: copied")
  }

  @Test func `a screen never has more lines than the terminal, and always the marked one`() {
    let many = (0..<500).map { VaultEntry(issuer: "\($0)", account: "", secret: [UInt8($0 % 256), 1], at: 1) }
    var state = ListState(entries: many)
    for _ in 0..<300 { _ = state.press(Array("\u{1B}[B".utf8)) }
    for rows in [4, 5, 24, 60] {
      let lines = state.screen(at: time(0), rows: rows, columns: 80, isColored: false)
      #expect(lines.count <= rows)
      #expect(lines.contains { $0.hasPrefix("› 300") })
    }
  }

  @Test func `a name is found by its beginning or a part, if only one fits`() throws {
    func find(_ name: String) throws -> String { try EntryName.find(name, in: entries).issuer }
    #expect(try find("github") == "GitHub" && find("bob") == "Bank" && find("GITEA: ALICE") == "Gitea")
    #expect(try find("hub") == "GitHub" && find(entries[1].id) == "GitHub" && find("gitea:alice") == "Gitea")
    #expect {
      try EntryName.find("git", in: entries)
    } throws: {
      "\($0)".contains("means 2 entries")
    }
    #expect {
      try EntryName.find("gitbub", in: entries)
    } throws: {
      "\($0)".contains("did you mean") && "\($0)".contains("github")
    }
  }
}
