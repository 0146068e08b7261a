import Foundation
import Testing
import TestSupport

/// Tests the process support that the other tests use.
@Suite struct ChildProcessTests {
  @Test("A process receives its arguments, environment, folder and input, and its output is kept")
  func run() async throws {
    try await Places.withTemporaryFolder { folder in
      let script = "echo \"$1 $WORD\"; pwd; cat; echo oops >&2; printf end; exit 3"
      let (exit, output, errors) = try await ChildProcess.run(
        "/bin/sh", ["-c", script, "sh", "argument"], input: Array("in\nput\n".utf8), environment: ["WORD": "word"],
        in: folder)
      #expect(exit == .code(3))
      #expect(output == ["argument word", folder, "in", "put", "end"])
      #expect(errors == ["oops"])
    }
  }

  @Test("Waiting for a line returns it, and throws when the stream ends without it")
  func lines() async throws {
    let process = try ChildProcess("/bin/sh", ["-c", "read a; echo got $a; read b"])
    process.write("x\n")
    #expect(try await process.output.first("an answer") { $0.hasPrefix("got") } == "got x")
    process.closeInput()
    await #expect(throws: StreamEnded.self) { try await process.output.first("nothing") { $0 == "never" } }
    #expect(try await process.exit() == .code(1))
  }

  @Test("A process is terminated by its id, and waiting is bounded")
  func signals() async throws {
    let process = try ChildProcess("/bin/cat")
    await #expect(throws: WaitedTooLong.self) { try await process.exit(within: .milliseconds(1)) }
    process.send(SIGTERM)
    #expect(try await process.exit() == .signal(SIGTERM))
    process.send(SIGKILL)
    process.write("to a dead process")
  }

  @Test("A missing program does not start")
  func missing() {
    #expect(throws: SpawnFailed.self) { try ChildProcess("/nowhere/at/all") }
    #expect(throws: NotThere.self) { try Places.tool("no-such-tool") }
    #expect(throws: NotThere.self) { try Places.product("no-such-product") }
  }

  @Test("A temporary folder is removed after use, even after an error")
  func folders() async throws {
    struct Stop: Error {}
    nonisolated(unsafe) var seen = ""
    await #expect(throws: Stop.self) {
      try await Places.withTemporaryFolder { folder in
        seen = folder
        #expect(FileManager.default.fileExists(atPath: folder))
        throw Stop()
      }
    }
    #expect(!seen.isEmpty && !FileManager.default.fileExists(atPath: seen))
  }
}
