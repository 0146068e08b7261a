import ByteCoding
import Locking
import GRDB
import MFADomain
import MFAFixtures
import MFAStore
import MFAService
import TestSupport
import Testing

/// The keys of calls in the database, without a server.
@Suite("Idempotency keys in the database", .serialized)
struct IdempotencyStoreTests {
  private struct Refused: Error {}

  private static func caller(_ subject: String) -> Caller {
    Caller(
      identity: GateIdentity(
        subject: subject, environment: .production, app: "T.app", sessionID: "s", clientAddress: "192.0.2.1",
        issuedAt: Timestamp(seconds: 0)),
      session: nil, requestID: "r")
  }

  private static func context(_ store: any Store, _ keys: KeyEncryptionKeys, _ clock: ManualClock) async throws
    -> DomainContext
  {
    let vault = try await Vault.open(in: store, with: keys, entropy: .system)
    return DomainContext(
      store: store, vault: vault, outbox: CapturedOutbox(),
      tokens: try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: "mfa"), clock: clock.wall)
  }

  private static func count(_ store: any Store, before instant: Timestamp) async throws -> Int {
    try await store.write { try $0.removeIdempotentCalls(startedBefore: instant, atMost: 1000) }
  }

  @Test("of equal calls at two backends on one database, one runs", arguments: TestDatabase.allCases)
  func race(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      let open = try await database.opener(in: folder)
      let (keys, clock) = (KeyEncryptionKeys.ephemeral(.system), ManualClock())
      let backends = [
        Idempotency(try await Self.context(try open(), keys, clock)),
        Idempotency(try await Self.context(try open(), keys, clock)),
      ]
      for round in 1...10 {
        let runs = LockedValue(0)
        let answers = await withTaskGroup(of: [UInt8]?.self) { group in
          for number in 0..<8 {
            group.addTask {
              try? await backends[number % 2].run("op", [1], key: "\(round)", by: Self.caller("a")) {
                runs.withLock { $0 += 1 }
                return [42]
              }.bytes
            }
          }
          return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(runs.withLock { $0 } == 1)
        // The others got the answer, or were refused while the call ran.
        #expect(answers.contains([42]) && answers.allSatisfy { $0 == nil || $0 == [42] })
        let late = try await backends[1].run("op", [1], key: "\(round)", by: Self.caller("a")) { throw Refused() }
        #expect(late.bytes == [42])
      }
    }
  }

  @Test("a call whose process is gone frees its key after a minute", arguments: TestDatabase.allCases)
  func lost(_ database: TestDatabase) async throws {
    let clock = ManualClock()
    let context = try await Self.context(try await database.open(), .ephemeral(.system), clock)
    let idempotency = Idempotency(context)
    // The first call still runs when the second one takes its key.
    let first = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) {
      await #expect(throws: IdempotencyRefusal.inProgress) {
        try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [0] }
      }
      clock.advance(by: .seconds(61))
      let second = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [2] }
      #expect(second.bytes == [2])
      return [1]
    }
    #expect(first.bytes == [1])
    // The late end of the first call does not replace the answer of the second one.
    let kept = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [3] }
    #expect(kept.bytes == [2])
  }

  @Test("a call whose process is gone frees its key at once if its clock ran ahead, and one that runs keeps it")
  func lostAhead() async throws {
    let clock = ManualClock()
    let context = try await Self.context(try SQLiteMFAStore.ephemeral(), .ephemeral(.system), clock)
    let idempotency = Idempotency(context)
    // The clock was a day ahead when the call began, and is set back while it runs.
    clock.advance(by: .seconds(86400))
    _ = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) {
      clock.advance(by: .seconds(-50))
      await #expect(throws: IdempotencyRefusal.inProgress) {
        try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [0] }
      }
      clock.advance(by: .seconds(-86350))
      let second = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [2] }
      #expect(second.bytes == [2])
      return [1]
    }
    let kept = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [3] }
    #expect(kept.bytes == [2])
  }

  @Test("a call whose answer cannot be kept succeeds and reports it, and its repetition is refused")
  func unkept() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/mfa.db"
      let context = try await Self.context(
        try SQLiteMFAStore(path: path), .ephemeral(.system), ManualClock())
      let idempotency = Idempotency(context)
      let answer = try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) {
        let other = try DatabaseQueue(path: path)
        try await other.write { db in
          try db.execute(
            sql: """
              CREATE TRIGGER refuse BEFORE UPDATE ON idempotent_calls
              BEGIN SELECT RAISE(ABORT, 'the answer is refused'); END
              """)
        }
        return [1]
      }
      #expect(answer.bytes == [1])
      #expect((answer.fault as? MFAStoreError)?.reason.contains("the answer is refused") == true)
      await #expect(throws: IdempotencyRefusal.inProgress) {
        try await idempotency.run("op", [1], key: "k", by: Self.caller("a")) { [2] }
      }
    }
  }

  @Test("one app instance has a bounded number of keys: the oldest make room", arguments: TestDatabase.allCases)
  func bounded(_ database: TestDatabase) async throws {
    let clock = ManualClock()
    let context = try await Self.context(try await database.open(), .ephemeral(.system), clock)
    let idempotency = Idempotency(context, mostOfCaller: 3)
    _ = try await idempotency.run("op", [1], key: "other", by: Self.caller("b")) { [0] }
    for number in UInt8(1)...5 {
      clock.advance(by: .seconds(1))
      _ = try await idempotency.run("op", [1], key: "\(number)", by: Self.caller("a")) { [number] }
    }
    for number in UInt8(3)...5 {
      let kept = try await idempotency.run("op", [1], key: "\(number)", by: Self.caller("a")) { [0] }
      #expect(kept.bytes == [number])
    }
    #expect(try await idempotency.run("op", [1], key: "other", by: Self.caller("b")) { [9] }.bytes == [0])
    #expect(try await Self.count(context.store, before: clock.wall.now().advanced(by: .seconds(1))) == 4)
  }
}
