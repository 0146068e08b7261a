import Glibc
import Locking
import ProcessSignals
import TestSupport
import Testing

@Suite("Process signals", .serialized, .timeLimit(.minutes(1)))
struct ProcessSignalsTests {
  @Test("The last registered handler receives each signal, and none does after the handling ends")
  func heard() async throws {
    let first = Watched([Int32]())
    let second = Watched([Int32]())
    ProcessSignals.hear([SIGUSR1, SIGURG]) { number in first.update { $0.append(number) } }
    for count in 1...100 {
      kill(getpid(), SIGUSR1)
      try await first.wait(for: "signal \(count)") { $0.count == count ? () : nil }
    }
    kill(getpid(), SIGURG)
    try await first.wait(for: "another signal") { $0.last == SIGURG ? () : nil }

    ProcessSignals.hear([SIGURG]) { number in second.update { $0.append(number) } }
    kill(getpid(), SIGURG)
    try await second.wait(for: "the signal at the second handler") { $0.isEmpty ? nil : () }
    kill(getpid(), SIGUSR1)
    try await first.wait(for: "the other signal at the first handler") { $0.count == 102 ? () : nil }

    // The default action for SIGURG is to ignore it.
    ProcessSignals.obey([SIGURG])
    kill(getpid(), SIGURG)
    kill(getpid(), SIGUSR1)
    try await first.wait(for: "the other signal") { $0.count == 103 ? () : nil }
    #expect(second.value == [SIGURG])
  }

  @Test("A process that inherited SIGCHLD as ignored learns how its programs end")
  func ended() async {
    await #expect(processExitsWith: .exitCode(3)) {
      signal(SIGCHLD, SIG_IGN)
      ProcessSignals.keepEndedChildren()
      var words: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup("exit 3"), nil]
      defer { for word in words { free(word) } }
      var id: pid_t = 0
      try #require(posix_spawn(&id, "/bin/sh", nil, nil, &words, nil) == 0)
      var status: Int32 = 0
      try #require(waitpid(id, &status, 0) == id)
      exit(status >> 8)
    }
  }
}
