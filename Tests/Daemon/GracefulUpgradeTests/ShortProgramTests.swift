import Glibc
import ProcessFrame
import TestSupport
import Testing

@Suite("Short programs", .timeLimit(.minutes(2)))
struct ShortProgramTests {
  private func run(_ script: String, limit: Duration = .seconds(60)) async -> ShortProgram.Outcome {
    await ShortProgram(path: "/bin/sh", arguments: ["-c", script], limit: limit).run()
  }

  private static let endings: [(script: String, ending: ShortProgram.Ending)] = [
    ("echo said; exit 3", .exited(status: 3)), ("echo said >&2", .exited(status: 0)),
    ("echo said; kill -9 $$", .killed(signal: 9)),
  ]

  @Test("The end of a program and the end of its output are reported", arguments: endings)
  func ends(_ script: String, _ ending: ShortProgram.Ending) async {
    let outcome = await run(script)
    #expect(outcome.ending == ending && outcome.output == "said\n")
  }

  @Test("A program that does not exit is killed at its limit")
  func endless() async {
    let outcome = await run("echo said; sleep 60", limit: .milliseconds(500))
    #expect(outcome.ending == .timedOut)
  }

  @Test("A program that writes without end is killed at its limit too, and the end of its output is kept")
  func talkative() async {
    let outcome = await run("exec yes", limit: .milliseconds(500))
    #expect(outcome.ending == .timedOut)
    #expect(outcome.output.utf8.count == 1024 && outcome.output.utf8.allSatisfy("y\n".utf8.contains))
  }

  @Test("The output of a program that has ended is kept, although another one goes on writing")
  func survivor() async {
    let outcome = await run("yes & exit 3")
    #expect(outcome.ending == .exited(status: 3))
  }

  @Test("A process that ignores SIGCHLD reports a program that has exited, and kills nothing")
  func ignoredEnds() async {
    // The program of a process that waited for its limit would be `timedOut`.
    await #expect(processExitsWith: .success) {
      signal(SIGCHLD, SIG_IGN)
      let program = ShortProgram(path: "/bin/sh", arguments: ["-c", "echo said; exit 3"], limit: .seconds(30))
      let outcome = await program.run()
      exit(outcome.ending == .lost && outcome.output == "said\n" ? 0 : 1)
    }
  }
}
