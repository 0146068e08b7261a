import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GRDB
import GateFixtures
import StoreConformance
import Testing

@testable import SQLiteStore

@Suite("Answered calls of the SQLite store are durable")
struct DurabilityTests {
  private let folder: TemporaryFolder
  private let store: SQLiteStore

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"))
  }

  @Test("Each commit is flushed: WAL mode, and synchronous is FULL although GRDB sets NORMAL")
  func synchronousIsFull() async throws {
    let (journal, synchronous) = try await store.writes.run { db in
      (try String.fetchOne(db, sql: "PRAGMA journal_mode"), try Int.fetchOne(db, sql: "PRAGMA synchronous"))
    }
    #expect(journal == "wal")
    #expect(synchronous == 2)
  }

  @Test("Keys, counters, nonces, revocations and challenge keys survive closing and reopening")
  func reopening() async throws {
    let (registration, nonce, ring) = (Fixture.registration(), Fixture.nonce(), ChallengeKeyRing.random())
    let revoked = Fixture.registration()
    _ = try await store.challengeKeys(orStoring: ring)
    _ = try await store.register(registration)
    _ = try await store.register(revoked)
    _ = try await store.revoke(revoked.key.keyID, at: Fixture.now)
    _ = try await store.admit(Fixture.use(of: registration.key, 5, over: nonce))
    await store.close()

    let reopened = SQLiteStore(path: store.path)
    #expect(try await reopened.admit(Fixture.use(of: registration.key, 6, over: nonce)) == .nonceSpent)
    #expect(
      try await reopened.admit(Fixture.use(of: registration.key, 5)) == .counterReplayed(stored: SignCount(5)))
    #expect(try await reopened.admit(Fixture.use(of: revoked.key, 1)) == .revoked)
    #expect(try await reopened.receipt(of: registration.key.keyID) == registration.receipt)
    #expect(try await reopened.challengeKeys(orStoring: .random()) == ring)
  }

  @Test("Only the owner can read the files, which contain the challenge keys")
  func fileModes() async throws {
    try await store.open()
    for suffix in ["", "-wal", "-shm"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: store.path + suffix)
      #expect(attributes[.posixPermissions] as? Int == 0o600, "\(suffix)")
    }
  }

  @Test("A hundred waiting calls share few commits, and each is answered")
  func groupCommit() async throws {
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    let counter = CommitCounter()
    try await store.writes.run { $0.add(transactionObserver: counter, extent: .databaseLifetime) }
    let hold = await QueueHold(store.writes)
    async let answers = StoreInvariant.tally(100) { [store] number in
      try await store.admit(Fixture.use(of: registration.key, UInt32(number) + 1, window: 63))
    }
    await hold.release(after: 100)
    #expect(try await answers.values.reduce(0, +) == 100)
    // The observer's own transaction, the one that blocked the queue, and one for all the others.
    #expect(counter.commits <= 3)
  }
}

private final class CommitCounter: TransactionObserver, @unchecked Sendable {
  // Guarded by the database's own queue, and read when that is idle.
  private(set) var commits = 0

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
  func databaseDidChange(with event: DatabaseEvent) {}
  func databaseDidCommit(_ db: Database) { commits += 1 }
  func databaseDidRollback(_ db: Database) {}
}
