import ACME
import Foundation
import TestSupport
import Testing

@Suite("The program that writes records of challenges", .timeLimit(.minutes(2)))
struct RecordHookTests {
  private let record = ChallengeRecord(name: "_acme-challenge.gate.example", value: "a-_Z0 $(id) ;\"'")

  /// Calls `body` with the path of a shell script.
  private func withScript(_ lines: String, _ body: (_ file: String) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/hook"
      try "#!/bin/sh\n\(lines)\n".write(toFile: file, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file)
      try await body(file)
    }
  }

  /// The process that the script `file` has started.
  private func startedProcess(of file: String) throws -> pid_t {
    let text = try String(contentsOfFile: file + ".id", encoding: .utf8)
    return try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
  }

  /// The reason why `hook` did not add the record.
  private func reason(_ hook: RecordHook) async -> String? {
    do throws(ACMEError) {
      try await hook.add(record)
      return nil
    } catch {
      guard case .record(record.name, let reason) = error else { return "\(error)" }
      return reason
    }
  }

  @Test("It gets verb, name and value as they are, no input, no other descriptor and an environment of two variables")
  func called() async throws {
    try await withScript(#"ls -l /proc/$$/fd >"$0.fds"; { echo "$#"; printf '%s\n' "$@"; cat; env; } >>"$0.seen""#) {
      file in
      let inheritable = open(file + ".inheritable", O_RDWR | O_CREAT, 0o600)
      defer { close(inheritable) }
      #expect(inheritable >= 0)
      let hook = RecordHook(program: file, wait: .zero)
      try await hook.add(record)
      try await hook.remove(record)
      let seen = try String(contentsOfFile: file + ".seen", encoding: .utf8).split(separator: "\n").map(String.init)
      #expect(seen.prefix(4) == ["3", "present", record.name, record.value])
      #expect(seen.contains("cleanup"))
      let descriptors = try String(contentsOfFile: file + ".fds", encoding: .utf8)
      #expect(descriptors.contains(file) && !descriptors.contains("inheritable"), "\(descriptors)")
      let variables = Set(seen.filter { $0.contains("=") && !$0.hasPrefix("a-_") }.map { $0.prefix { $0 != "=" } })
      #expect(variables.isSubset(of: ["LANG", "PATH", "PWD", "OLDPWD", "SHLVL", "_"]), "\(variables)")
    }
  }

  @Test("A failure has the status and the end of what the program wrote")
  func fails() async throws {
    try await withScript("printf '%2000s' x; echo zone is locked >&2; exit 3") { file in
      let reason = await reason(RecordHook(program: file, wait: .zero))
      #expect(reason?.hasPrefix("\(file) present exited with status 3: ") == true, "\(reason ?? "")")
      #expect(reason?.contains("zone is locked") == true && reason.map { $0.utf8.count < 1200 } == true)
    }
    try await withScript("kill -9 $$") { file in
      #expect(await reason(RecordHook(program: file, wait: .zero)) == "\(file) present was killed by signal 9")
    }
    #expect(
      await reason(RecordHook(program: "/nowhere", wait: .zero))
        == "/nowhere present cannot be started: No such file or directory")
  }

  @Test("A program that does not end is killed with all that it has started")
  func hangs() async throws {
    try await withScript(#"sleep 3600 & echo $! >"$0.id"; wait"#) { file in
      let reason = await reason(RecordHook(program: file, wait: .zero, limit: .seconds(2)))
      #expect(reason == "\(file) present did not end within 2 s")
      let id = try startedProcess(of: file)
      // The kernel ends it when it next runs. Then it waits for process 1, which may be slow.
      while kill(id, 0) == 0, let state = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8),
        !state.contains(") Z ")
      {
        try await Task.sleep(for: .milliseconds(5))
      }
    }
  }

  @Test("A process that it leaves behind with its output open does not delay the end")
  func leavesBehind() async throws {
    try await withScript(#"sleep 3600 & echo $! >"$0.id"; exit 0"#) { file in
      try await RecordHook(program: file, wait: .zero, limit: .seconds(60)).add(record)
      kill(try startedProcess(of: file), SIGKILL)
    }
  }
}
