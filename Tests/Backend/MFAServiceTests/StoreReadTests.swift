import ByteCoding
import Dispatch
import Foundation
import Locking
import MFADomain
@testable import MFAStore
import PostgresServers
import TestSupport
import Testing

@Suite("Reads of the store", .serialized)
struct StoreReadTests {
  private struct Refused: Error {}

  @Test("while a read takes long, and for a second after it, reads leave the threads that ask")
  func quickReads() {
    let clock = LockedValue(ContinuousClock.now)
    let reads = QuickReads(now: { clock.withLock { $0 } })
    func pass(_ time: Duration) { clock.withLock { $0 = $0 + time } }
    reads.run {
      pass(.milliseconds(20))
      #expect(reads.arePossible)
    }
    #expect(reads.arePossible)
    #expect(throws: Refused.self) {
      try reads.run {
        pass(.milliseconds(21))
        #expect(!reads.arePossible)
        throw Refused()
      }
    }
    #expect(!reads.arePossible)
    pass(.milliseconds(999))
    #expect(!reads.arePossible)
    pass(.milliseconds(1))
    #expect(reads.arePossible)
  }

  @Test("a read of a file sees what was committed before it, on the asking thread, after a slow read, and elsewhere")
  func file() async throws {
    for executor in [OneThread(), nil] {
      try await Places.withTemporaryFolder { folder in
        try await withTaskExecutorPreference(executor) { try await Self.readAndWrite(folder + "/mfa.db") }
      }
    }
  }

  private static func readAndWrite(_ path: String) async throws {
    let store = try SQLiteMFAStore(path: path)
    for name in ["ada", "bob"] {
      let user = User(id: UUID(), username: try Username(name), createdAt: Timestamp(seconds: 1_767_225_600))
      try await store.write { try $0.insert(user) }
      #expect(try await store.read { try $0.user(user.id)?.username } == user.username)
      await #expect(throws: Refused.self) {
        try await store.read { _ in
          // As on a slow disk.
          usleep(25_000)
          throw Refused()
        }
      }
      #expect(try await store.read { try $0.user(user.id)?.username } == user.username)
    }
    #expect(try await StoreDeadline.within(.seconds(30)) { try await store.read { try $0.dataKeys().isEmpty } })
  }

  @Test(
    "a read on an executor of the task's own runs on its thread; another one keeps its deadline, whatever it waits for")
  func threads() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore(path: folder + "/mfa.db")
      let executor = OneThread()
      let same = try await Task(executorPreference: executor) {
        let asking = pthread_self()
        return try await store.read { _ in pthread_equal(asking, pthread_self()) != 0 }
      }.value
      #expect(same)
      // As on a disk that does not answer: without the deadline, the call would never return.
      let hold = DispatchSemaphore(value: 0)
      await #expect(throws: MFAStoreError.late) {
        try await StoreDeadline.within(.milliseconds(100)) { try await store.read { _ in hold.wait() } }
      }
      hold.signal()
    }
  }

  @Test("of simultaneous reads on PostgreSQL, each gets its own result, though a statement of one fails")
  func shared() async throws {
    let store = try PostgresMFAStore(url: try await PostgresServer.shared().newURL())
    let users = try (0..<40).map {
      User(id: UUID(), username: try Username("user\($0)"), createdAt: Timestamp(seconds: 1_767_225_600))
    }
    try await store.write { records in for user in users { try records.insert(user) } }
    let outcomes = await withTaskGroup { group in
      for (index, user) in users.enumerated() {
        group.addTask {
          do {
            return try await store.read { records in
              if index % 10 == 1 { throw Refused() }
              if index % 10 == 2 { _ = try (records as? SQLRecords)?.sql.rows("SELECT nothing", []) }
              return try records.user(user.id)?.username == user.username ? "found" : "missing"
            }
          } catch {
            return error is Refused ? "refused" : error is MFAStoreError ? "failed" : "\(error)"
          }
        }
      }
      return await group.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
    }
    #expect(outcomes == ["found": 32, "refused": 4, "failed": 4])
  }

  @Test("after a statement that PostgreSQL cannot prepare, the next read and the next write succeed")
  func unprepared() async throws {
    let store = try PostgresMFAStore(url: try await PostgresServer.shared().newURL())
    let user = User(id: UUID(), username: try Username("user"), createdAt: Timestamp(seconds: 1_767_225_600))
    @Sendable func fail(_ records: any Records) throws {
      _ = try (records as? SQLRecords)?.sql.rows("SELECT nothing", [])
    }
    // It is the first one of each connection, so the beginning of the transaction is prepared together with it.
    let fault = await #expect(throws: MFAStoreError.self) { try await store.write { try fail($0) } }
    #expect(fault?.reason.contains("column \"nothing\" does not exist") == true, "\(String(describing: fault))")
    try await store.write { try $0.insert(user) }
    await #expect(throws: MFAStoreError.self) { try await store.read { try fail($0) } }
    #expect(try await store.read { try $0.user(user.id)?.username } == user.username)
  }

  @Test(
    "a connection is replaced if PostgreSQL has lost one of its prepared statements, or has another one of its name",
    arguments: ["DEALLOCATE ALL"] + (0..<8).map { "PREPARE s\($0) AS SELECT 1" })
  func otherStatements(_ change: String) async throws {
    let store = try PostgresMFAStore(url: try await PostgresServer.shared().newURL())
    #expect(try await store.read { try $0.dataKeys().isEmpty })
    // One of these two may fail.
    _ = try? await store.read { _ = try ($0 as? SQLRecords)?.sql.rows(change, []) }
    _ = try? await store.read { try $0.user(UUID()) }
    #expect(try await store.read { try $0.user(UUID()) } == nil)
  }
}

/// Runs tasks on one thread at a time, outside of Swift's pool.
private final class OneThread: TaskExecutor {
  private let queue = DispatchQueue(label: "one thread")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
