import Glibc
import Locking
import ProcessSignals
import TestSupport
import Testing

@Suite("Signals of a process", .serialized, .timeLimit(.minutes(1)))
struct ProcessSignalsTests {
  @Test("each is heard that comes after the call, the last one to ask hears it, and nobody does after the end")
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
    try await second.wait(for: "the signal at whom asked last") { $0.isEmpty ? nil : () }
    kill(getpid(), SIGUSR1)
    try await first.wait(for: "the other signal at whom asked first") { $0.count == 102 ? () : nil }

    // What the system does with it by default is nothing.
    ProcessSignals.obey([SIGURG])
    kill(getpid(), SIGURG)
    kill(getpid(), SIGUSR1)
    try await first.wait(for: "the other signal") { $0.count == 103 ? () : nil }
    #expect(second.value == [SIGURG])
  }
}
