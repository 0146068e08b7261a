import ByteCoding
import Foundation
import Locking
@testable import MFADomain
import MFAFixtures
import MFAStore
import Testing

@Suite("The unit of work", .timeLimit(.minutes(1)))
struct UnitOfWorkTests {
  private static let operation = NamedActor(historyName: "test", requestID: "request")
  private static let message = OutgoingMessage(
    destination: .phone(PhoneNumber.fixture), code: "123456", lifetime: .seconds(300))

  private struct Interrupted: Error {}

  /// A context over a store with one user. The scene counts the wake-ups of the user's sockets.
  private struct Scene: Sendable {
    let store: any Store
    let context: DomainContext
    let outbox = CapturedOutbox()
    let clock = ManualClock()
    let user: User
    let wakeUps = Counter()

    init(_ wrapping: (any Store) -> any Store = { $0 }) async throws {
      let inner = try SQLiteMFAStore.ephemeral()
      let vault = try await Vault.open(in: inner, with: .ephemeral(.system), entropy: .system)
      user = User(
        id: UUID(), username: try Username("ada"), createdAt: clock.now, createdBy: .attestedKey("key"))
      try await inner.write { [user] in try $0.insert(user) }
      store = wrapping(inner)
      context = DomainContext(
        store: store, vault: vault, outbox: outbox, tokens: NoTokens(), clock: clock.wall)
      _ = context.hub.listen(to: user.id) { [wakeUps] in wakeUps.count() }
    }

    var notices: [Notice] {
      get async throws {
        try await store.read { [user] in try $0.notices(of: user.id, after: 0, atMost: 100) }
      }
    }

    var history: [String] {
      get async throws {
        try await store.read { [user] in
          try $0.auditEntries(before: .max, account: user.username.key, atMost: 100).map(\.event)
        }
      }
    }

    var wakeUpCount: Int { wakeUps.value }
  }

  @Test("a message and a notice go out after the commit, and the sockets of a user are notified once")
  func afterTheCommit() async throws {
    let scene = try await Scene()
    let seen = try await scene.context.write(by: Self.operation) { work in
      work.send(Self.message)
      try work.notify(scene.user.id, of: .locked)
      try work.notify(scene.user.id, of: .unlocked)
      return (scene.outbox.messages.count, scene.wakeUpCount)
    }
    #expect(seen == (0, 0))
    #expect(scene.outbox.messages == [Self.message])
    #expect(scene.wakeUpCount == 1)
    #expect(try await scene.notices.map(\.kind) == [.locked, .unlocked])
  }

  @Test("the sockets are notified only after the notice can be read")
  func readableNotice() async throws {
    let (scene, found) = (try await Scene(), Counter())
    let checks = AsyncStream<Void>.makeStream()
    _ = scene.context.hub.listen(to: scene.user.id) { checks.continuation.yield() }
    async let check: Void = {
      for await _ in checks.stream {
        for _ in try await scene.notices { found.count() }
        return
      }
    }()
    try await scene.context.write(by: Self.operation) { try $0.notify(scene.user.id, of: .locked) }
    try await check
    #expect(found.value == 1)
  }

  @Test("an error of the body rolls back all changes, and no message or notice goes out")
  func errorOfTheBody() async throws {
    for error in [Interrupted(), MFARefusal.notFound] as [any Error] {
      let scene = try await Scene()
      await #expect(throws: (any Error).self) {
        try await scene.context.write(by: Self.operation) { work in
          work.send(Self.message)
          try work.note(.userLocked, of: scene.user)
          try work.notify(scene.user.id, of: .locked)
          throw error
        }
      }
      #expect(scene.outbox.messages.isEmpty)
      #expect(scene.wakeUpCount == 0)
      #expect(try await scene.notices.isEmpty)
      #expect(try await scene.history.isEmpty)
    }
  }

  @Test("a recorded refusal commits the changes, sends the queued messages, and throws the refusal")
  func recordedRefusal() async throws {
    let scene = try await Scene()
    await #expect(throws: MFARefusal.codeInvalid(.wrong)) {
      try await scene.context.write(by: Self.operation) { work in
        var limiter = AttemptLimiter(at: work.now)
        limiter.count(at: work.now)
        try work.records.save(limiter, on: "subject", account: scene.user.username.key)
        try work.note(.codeRefused, of: scene.user, ["reason=code_wrong"])
        try work.notify(scene.user.id, of: .securityKeySuspected)
        throw RecordedRefusal(.codeInvalid(.wrong))
      }
    }
    #expect(try await scene.store.read { try $0.limiter(on: "subject")?.failuresInARow } == 1)
    #expect(try await scene.history == ["code.refused"])
    #expect(try await scene.notices.map(\.kind) == [.securityKeySuspected])
    #expect(scene.wakeUpCount == 1)
    let trail = AuditTrail(scene.store, scene.context.vault.historyKeys)
    #expect(try await trail.verify().fault == nil)
  }

  @Test("a body that runs twice sends its message once")
  func retry() async throws {
    let runs = Counter()
    let scene = try await Scene { RepeatingStore(inner: $0) }
    try await scene.context.write(by: Self.operation) { work in
      runs.count()
      work.send(Self.message)
      try work.note(.userLocked, of: scene.user)
      try work.notify(scene.user.id, of: .locked)
    }
    #expect(runs.value == 2)
    #expect(scene.outbox.messages == [Self.message])
    #expect(scene.wakeUpCount == 1)
    #expect(try await scene.notices.count == 1)
    #expect(try await scene.history == ["user.locked"])
  }

  @Test("a failed commit sends no message")
  func failedCommit() async throws {
    let scene = try await Scene { FailingStore(inner: $0) }
    await #expect(throws: MFAStoreError.self) {
      try await scene.context.write(by: Self.operation) { work in
        work.send(Self.message)
        try work.notify(scene.user.id, of: .locked)
      }
    }
    #expect(scene.outbox.messages.isEmpty)
    #expect(scene.wakeUpCount == 0)
  }

  @Test("the time is that of the operation, or is read before the transaction waits for its turn")
  func time() async throws {
    let scene = try await Scene()
    let began = scene.clock.now
    let time = try await scene.context.write(by: Self.operation) { work in
      scene.clock.advance(by: .seconds(60))
      return work.now
    }
    #expect(time == began)
    #expect(try await scene.context.write(by: Self.operation, at: began) { $0.now } == began)
    #expect(try await scene.context.read(by: Self.operation, at: began) { $0.now } == began)
    #expect(try await scene.context.read(by: Self.operation) { $0.now } == scene.clock.now)
  }

  @Test("a read transaction refuses writes and notices")
  func reading() async throws {
    let scene = try await Scene()
    await #expect(throws: MFAStoreError.self) {
      try await scene.context.read(by: Self.operation) { try $0.notify(scene.user.id, of: .locked) }
    }
    #expect(scene.wakeUpCount == 0)
    #expect(try await scene.notices.isEmpty)
  }
}

extension PhoneNumber {
  fileprivate static let fixture: PhoneNumber = {
    guard let number = try? PhoneNumber("+14155550123") else { preconditionFailure("the number is well-formed") }
    return number
  }()
}

private final class Counter: Sendable {
  private let counted = LockedValue(0)

  func count() { counted.withLock { $0 += 1 } }
  var value: Int { counted.withLock { $0 } }
}

/// Issues no tokens.
private struct NoTokens: AccessTokenIssuer {
  let lifetime = Duration.seconds(300)

  func issue(for session: LoginSession, of user: User, at now: Timestamp) async throws -> String { "" }
}

/// Runs each body twice: once in a transaction that is rolled back, as after a conflict, and once in a transaction
/// that is committed.
private struct RepeatingStore: Store {
  let inner: any Store

  private struct Conflict: Error {}

  func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    try await inner.read(body)
  }

  func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    do {
      try await inner.write { records in
        _ = try body(records)
        throw Conflict()
      }
    } catch is Conflict {}
    return try await inner.write(body)
  }

  func authenticateHistory(with keys: HistoryKeys) { inner.authenticateHistory(with: keys) }
}

/// Runs each body and then fails to commit.
private struct FailingStore: Store {
  let inner: any Store

  func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    try await inner.read(body)
  }

  func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    try await inner.write { records in
      _ = try body(records)
      throw MFAStoreError(reason: "the commit failed")
    }
  }

  func authenticateHistory(with keys: HistoryKeys) { inner.authenticateHistory(with: keys) }
}
