import AuthenticatorVault
import Foundation
import Glibc
import OneTimePasswords
import TestSupport
import Testing

@testable import authenticator

private let secret = Array("12345678901234567890".utf8)
private let alice = VaultEntry(issuer: "GitHub", account: "alice", secret: secret, at: 1)
private let bank = VaultEntry(issuer: "Bank", account: "bob", secret: secret, kind: .hotp, at: 1)

/// A shell with a program in the place of xclip, which keeps the clipboard in a file and the arguments of all processes
/// in another one.
private struct Desktop {
  let shell: Shell

  init(_ shell: Shell) throws {
    self.shell = shell
    let folder = shell.folder + "/bin"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let script = """
      #!/bin/sh
      cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' >>\(shell.folder)/seen
      case "$*" in
      *-out*) cat \(shell.folder)/clipboard ;;
      *) cat >\(shell.folder)/clipboard ;;
      esac

      """
    try Data(script.utf8).write(to: URL(fileURLWithPath: folder + "/xclip"))
    chmod(folder + "/xclip", 0o755)
  }

  var environment: [String: String?] { ["DISPLAY": ":99", "PATH": shell.folder + "/bin:/usr/bin:/bin"] }

  var clipboard: String {
    get { (try? String(contentsOfFile: shell.folder + "/clipboard", encoding: .utf8)) ?? "" }
    nonmutating set { try? Data(newValue.utf8).write(to: URL(fileURLWithPath: shell.folder + "/clipboard")) }
  }

  func run(_ line: String) async throws -> Shell.Result { try await shell.run(line, environment: environment) }

  /// How many processes wait to clear the clipboard of this desktop.
  func waiting() async throws -> Int { try await shell.waitingClearings().count }

  /// Waits until `isDone`, for ten seconds at most.
  func wait(until isDone: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<100 {
      if try await isDone() { return true }
      try await Task.sleep(for: .milliseconds(100))
    }
    return false
  }
}

@Suite("authenticator and the clipboard", .timeLimit(.minutes(3)))
struct CopyTests {
  private func withDesktop(_ body: (Desktop) async throws -> Void) async throws {
    try await withShell { shell in
      try shell.makeVault([alice, bank])
      try await body(try Desktop(shell))
    }
  }

  @Test func `a code is cleared from the clipboard, and stands in no argument and no environment`() async throws {
    try await withDesktop { desktop in
      let code = OneTimePassword.standard.code(secret: secret, counter: 0)
      let run = try await desktop.run("code bank --copy --clear-after 2")
      #expect(run.code == 0 && run.output.isEmpty && run.errors.isEmpty, "\(run)")
      #expect(desktop.clipboard == code)
      #expect(try await desktop.wait { desktop.clipboard.isEmpty })
      let seen = try String(contentsOfFile: desktop.shell.folder + "/seen", encoding: .utf8)
      #expect(seen.contains("clear-clipboard") && !seen.contains(code))
    }
  }

  @Test func `JSON is refused where it is not what is printed, before a counter is used up`() async throws {
    try await withDesktop { desktop in
      for line in ["code bank --copy --json", "list --lines --json"] {
        let run = try await desktop.run(line)
        #expect(run.code == 64 && run.output.isEmpty && run.errors[0].contains("--json"), "\(run)")
      }
      #expect(desktop.clipboard.isEmpty)
      let next = OneTimePassword.standard.code(secret: secret, counter: 0)
      #expect(try await desktop.run("code bank").output == [next])
    }
  }

  @Test func `what was copied since stays, and the process that waited has exited`() async throws {
    try await withDesktop { desktop in
      #expect(try await desktop.run("code bank --copy --clear-after 2").code == 0)
      desktop.clipboard = "my own text"
      let reads = { () -> Int in
        let seen = try? String(contentsOfFile: desktop.shell.folder + "/seen", encoding: .utf8)
        return seen?.components(separatedBy: "\n-out\n").count ?? 0
      }
      #expect(try await desktop.wait { reads() > 1 })
      try await Task.sleep(for: .milliseconds(300))
      #expect(desktop.clipboard == "my own text")
    }
  }

  @Test func `nothing waits after off, and other times than 1 to 3600 are refused`() async throws {
    try await withDesktop { desktop in
      #expect(try await desktop.run("code bank --copy --clear-after off").code == 0)
      #expect(try await desktop.waiting() == 0 && desktop.clipboard.count == 6)
      for time in ["0", "-1", "3601", "x", "9223372036854775808"] {
        let run = try await desktop.run("code alice --copy --clear-after=\(time)")
        #expect(run.code == 64 && run.errors[0].contains("1 to 3600 seconds, or off"), "\(run)")
      }
      let direct = try await desktop.shell.run("clear-clipboard --after 5000 --with xclip")
      #expect(direct.code == 64, "\(direct)")
    }
  }

  @Test("Only the same text is cleared", arguments: [("123456", true), ("123456\n", false), ("1234567", false)])
  func comparison(_ text: String, _ isCleared: Bool) async throws {
    try await withDesktop { desktop in
      desktop.clipboard = text
      let run = try await desktop.shell.run(
        "clear-clipboard --waits --after 1 --with xclip", input: "123456", environment: desktop.environment)
      #expect(run.code == 0 && desktop.clipboard == (isCleared ? "" : text), "\(run)")
    }
  }
}

@Suite("The next code, and pickers", .timeLimit(.minutes(3)))
struct NextCodeTests {
  @Test func `the next code begins when the present one ends`() throws {
    let slow = VaultEntry(issuer: "Slow", account: "", secret: secret, kind: .totp(period: 60), at: 1)
    for (entry, time, next, rest) in [(alice, 59.0, 60.0, 1), (alice, 60, 90, 30), (slow, 60.5, 120, 60)] {
      let now = Date(timeIntervalSince1970: time)
      let shown = try ShownCode(nextOf: entry, at: now)
      #expect(try shown.code == entry.code(at: Date(timeIntervalSince1970: next)) && shown.beginsIn == rest)
      #expect(shown.validFor == rest + (entry.period ?? 0))
      #expect(shown.beginning(after: now)?.hasPrefix("begins in \(rest) s, at 1970-01-01T00:0") == true)
    }
  }

  @Test func `the command prints the next code alone, and when it begins to standard error`() async throws {
    try await withShell { shell in
      try shell.makeVault([alice, bank])
      let run = try await shell.run("code alice --next")
      #expect(run.code == 0 && run.output.count == 1 && run.output[0].count == 6)
      #expect(run.errors.count == 1 && run.errors[0].hasPrefix("begins in "), "\(run)")
      let json = try await shell.run("code alice --next --json")
      #expect(json.output[0].contains(#""beginsIn":"#), "\(json)")
      #expect(try await !shell.run("code alice --json").output[0].contains("beginsIn"))
      let counter = try await shell.run("code bank --next")
      #expect(counter.code == 64 && counter.errors[0].contains("from a counter"), "\(counter)")
      // The counter was not used.
      #expect(try await shell.run("code bank").output == ["755224"])
    }
  }

  @Test func `a picker gets one name a line, and its line gives the code`() async throws {
    try await withShell { shell in
      let twin = VaultEntry(issuer: "GitHub", account: "alice", secret: secret + [1], digits: 8, at: 1)
      let hostile = VaultEntry(
        issuer: "a\u{1B}[2J\n\u{0}b", account: "\u{202E}", secret: secret + [2], digits: 7, at: 1)
      try shell.makeVault([alice, twin, hostile])
      let listed = try await shell.run("list --lines")
      #expect(listed.code == 0 && listed.output.count == 3, "\(listed)")
      #expect(Set(listed.output).isSuperset(of: ["GitHub: alice", "GitHub: alice (2)"]))
      for line in listed.output {
        #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{202E}" })
        for end in ["", "\n", "\r\n"] {
          let run = try await shell.run("code --select", input: line + end)
          #expect(run.code == 0 && run.output.count == 1, "\(line): \(run)")
        }
      }
      let counts = try await listed.output.asyncMap { try await shell.run("code --select", input: $0).output[0].count }
      #expect(counts.sorted() == [6, 7, 8])
      for (line, code, words) in [("", 66, "no entry was chosen"), ("GitHub", 66, "no entry has the line")] {
        let run = try await shell.run("code --select", input: line)
        #expect(run.code == Int32(code) && run.errors[0].contains(words), "\(run)")
      }
      #expect(try await shell.run("code").code == 64)
      #expect(try await shell.run("code alice --select", input: "x").code == 64)
    }
  }

  @Test func `lines are different from each other whatever the names are`() throws {
    let names = ["A", "A", "A (2)", "A", "\u{E9}", "e\u{301}", " A ", ""]
    let entries = names.enumerated().map { number, name in
      VaultEntry(issuer: name, account: "", secret: [UInt8(number), 1], at: 1)
    }
    let picker = PickerLines(entries)
    #expect(Set(picker.lines.map { Array($0.utf8) }).count == names.count)
    for (line, entry) in zip(picker.lines, entries) { #expect(try picker.entry(of: line).id == entry.id) }
  }
}

extension Array {
  fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
    var values: [Value] = []
    for element in self { values.append(try await transform(element)) }
    return values
  }
}
