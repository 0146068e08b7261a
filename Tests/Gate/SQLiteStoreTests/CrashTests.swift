import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import SQLiteStore
import StoreConformance
import Testing

@Suite("Kills of a process")
struct CrashTests {
  @Test("A killed process loses no answered call: no nonce and no counter is valid again", arguments: [1, 40, 400])
  func killed(after count: Int) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, count = count as Int] in
      let child = try await CrashingNode(folder: path)
      try await child.serve(until: count)
    }
    let answered = try AnswerFile(folder: path).answers
    #expect(answered.count >= count)
    let store = SQLiteStore(path: path + "/state.db")
    for answer in answered {
      let record = try #require(try await store.record(of: answer.keyID))
      #expect(record.counter >= answer.counter)
      let again = KeyUse(
        keyID: answer.keyID, counter: SignCount(.max), nonce: answer.nonce, window: .none, at: Fixture.now)
      #expect(try await store.admit(again) == .nonceSpent)
    }
    await store.close()
  }
}

/// The process that is killed: it registers keys, admits them from many concurrent tasks, and notes each answer.
private struct CrashingNode: Sendable {
  private let store: SQLiteStore
  private let answers: AnswerFile
  private let keys: [DeviceKey]

  init(folder: String) async throws {
    store = SQLiteStore(path: folder + "/state.db")
    answers = AnswerFile(folder: folder)
    var keys: [DeviceKey] = []
    for number in 0..<8 {
      let registration = Fixture.registration(of: number % 2 == 0 ? Fixture.key() : Fixture.androidKey())
      guard try await store.register(registration) == .inserted else { throw FixtureError.unexpected }
      keys.append(registration.key)
    }
    self.keys = keys
  }

  /// Admits until `count` calls are answered, then kills the process while other calls are in progress.
  func serve(until count: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for key in keys {
        group.addTask {
          for counter in UInt32(1)... {
            let use = Fixture.nextUse(of: key, counter)
            guard try await store.admit(use) == .admitted else { throw FixtureError.unexpected }
            if try answers.note(use) >= count { kill(getpid(), SIGKILL) }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// The answered calls, one for each line. A line is written to the kernel before the next call, so a kill does not
/// lose it.
private struct AnswerFile: Sendable {
  private let path: String

  init(folder: String) { path = folder + "/answers" }

  /// Notes an answer and returns the number of answers.
  func note(_ use: KeyUse) throws -> Int {
    // All lines have one length.
    let counter = String(use.counter?.value ?? 0, radix: 16)
    let line =
      "\(Hex.encode(use.keyID.bytes)) \(String(repeating: "0", count: 8 - counter.count))\(counter) "
      + "\(use.nonce.text)\n"
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    defer { close(file) }
    guard write(file, line, line.utf8.count) == line.utf8.count else { throw FixtureError.unexpected }
    return Int(lseek(file, 0, SEEK_END)) / line.utf8.count
  }

  var answers: [(keyID: KeyID, counter: SignCount, nonce: Nonce)] {
    get throws {
      try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map { line in
        let words = line.split(separator: " ")
        guard words.count == 3, let keyID = Hex.decode(words[0]).flatMap(KeyID.init(bytes:)),
          let counter = UInt32(words[1], radix: 16), let nonce = Nonce(text: String(words[2]))
        else { throw FixtureError.unexpected }
        return (keyID, SignCount(counter), nonce)
      }
    }
  }
}
