import ByteCoding
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

  @Test("a read of a file sees what was committed before it, on the asking thread and after a slow read")
  func file() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore(path: folder + "/mfa.db")
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
}
