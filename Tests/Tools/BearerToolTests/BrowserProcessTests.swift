import Foundation
import Glibc
import TestSupport
import Testing

@Suite("The process of the browser", .timeLimit(.minutes(2)))
struct BrowserProcessTests {
  @Test func `no browser starts as another user by sudo, and the address is printed`() async throws {
    try await withHostileProvider { shell, _ in
      try shell.write("#!/bin/sh\necho >started\n", to: "idle")
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: shell.folder + "/idle")
      let login = try shell.start(
        "login --timeout 30 work",
        environment: ["BROWSER": shell.folder + "/idle", "SUDO_UID": "\(getuid() + 1)"])
      defer { login.kill() }
      _ = try await login.errors.first("the address") { $0.hasPrefix("http://") }
      #expect(login.errors.lines.contains { $0.contains("it would run as uid \(getuid()) by sudo") })
      #expect(!FileManager.default.fileExists(atPath: shell.folder + "/started"))
    }
  }

  @Test func `a browser starts with the usual signals and its three streams alone`() async throws {
    try await withHostileProvider { shell, _ in
      let pipe = shell.folder + "/facts"
      try #require(mkfifo(pipe, 0o600) == 0)
      // The shell reads its signals by itself: while it waits for a command, it blocks some.
      try shell.write(
        """
        #!/bin/sh
        {
          while read -r line; do
            case $line in Sig[IB]*) echo "$line" ;; esac
          done </proc/$$/status
          ls /proc/$$/fd
          echo end
        } >\(pipe)
        """, to: "idle")
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: shell.folder + "/idle")
      let reader = try ChildProcess("/bin/cat", [pipe])
      defer { reader.kill() }
      let login = try shell.start("login --timeout 30 work", environment: ["BROWSER": shell.folder + "/idle"])
      defer { login.kill() }
      _ = try await reader.output.first("the facts") { $0 == "end" }
      let facts = reader.output.lines
      for name in ["SigIgn", "SigBlk"] {
        let line = try #require(facts.first { $0.hasPrefix(name) }, "\(facts)")
        let mask = try #require(line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) })
        #expect(mask & 1 << UInt64(SIGPIPE - 1) == 0, "\(line)")
      }
      // The shell keeps its standard output and its script above the streams.
      #expect(facts.filter { Int($0) ?? 10 < 10 } == ["0", "1", "2"], "\(facts)")
    }
  }
}
