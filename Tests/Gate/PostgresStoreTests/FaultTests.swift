import AppAttest
import AttestGate
import ByteCoding
import Databases
import Dispatch
import PostgresServers
import StoreConformance
import Testing

@testable import PostgresStore

@Suite("The PostgreSQL store refuses calls during a failure and recovers without help", .timeLimit(.minutes(10)))
struct FaultTests {
  private static func store(
    at url: String, _ change: (inout PostgresStore.Limits) -> Void = { _ in }
  ) throws -> PostgresStore {
    var limits = PostgresStore.Limits()
    change(&limits)
    return PostgresStore(try ConnectionParameters(url: url), limits: limits)
  }

  @Test("A missing server is reported immediately, and used as soon as it is available")
  func absentServer() async throws {
    let server = try await PostgresServer.start()
    let store = try Self.store(at: PostgresServer.url(of: [server]))
    try await store.open()
    #expect(store.health == .healthy)
    try await server.crash()
    await #expect(throws: StoreError.self) { try await store.register(Fixture.registration()) }
    guard case .failing = store.health else {
      Issue.record("\(store.health)")
      return
    }
    // A call does not wait for a connection that is known to be down: that would be more than a second each, too much
    // for the time limit of the suite.
    for _ in 0..<1000 { _ = try? await store.register(Fixture.registration()) }
    try await server.start()
    try await Self.eventually { try await store.register(Fixture.registration()) == .inserted }
    try await store.open()
    #expect(try await store.admit(Fixture.use(of: Fixture.key(), 1)) == .unknownKey)
    await store.close()
  }

  @Test("Idle connections that the server closed do not fail a call")
  func closedConnections() async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL()
    let store = try Self.store(at: url + "&application_name=closed")
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    #expect(try await store.admit(Fixture.use(of: registration.key, 1)) == .admitted)
    let connections = "FROM pg_stat_activity WHERE application_name = 'closed'"
    try await server.sql("SELECT pg_terminate_backend(pid) \(connections)")
    try await Self.eventually { try await server.sql("SELECT COUNT(*) \(connections)") == ["0"] }
    #expect(try await store.admit(Fixture.use(of: registration.key, 2)) == .admitted)
    #expect(try await store.register(Fixture.registration()) == .inserted)
    await store.close()
  }

  @Test("A newer schema is not changed")
  func newerSchema() async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL()
    let store = try Self.store(at: url)
    try await store.open()
    _ = try await store.run { connection throws(StoreError) in
      try connection.ask(Call("INSERT INTO sallyport_migrations (version) VALUES (99)")).changes
    }
    let older = try Self.store(at: url)
    await #expect(throws: StoreError.unreachable(reason: "the store was written by a newer version")) {
      try await older.open()
    }
    await store.close()
    await older.close()
  }

  @Test("Twenty stores that start at the same time on an empty schema all find its tables")
  func migrationRace() async throws {
    let url = try await PostgresServer.shared().newURL()
    let stores = try (0..<20).map { _ in try Self.store(at: url) }
    let answers = try await StoreInvariant.tally(20) { number in
      try await stores[number].register(Fixture.registration())
    }
    #expect(answers == [.inserted: 20])
    for store in stores { await store.close() }
  }

  @Test(
    "The setting synchronous_commit is at least on, for any default of role or database",
    arguments: [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
  func synchronousCommit(_ given: String, _ expected: String) async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = try Self.store(at: url + "%20-csynchronous_commit%3D\(given)")
    let level = try await store.run { connection throws(StoreError) -> String? in
      let answer = try connection.ask(Call("SELECT current_setting('synchronous_commit') AS level"))
      return try StoreError.onMalformed("settings") { () throws(MalformedColumn) in
        try answer.rows.first?.read("level") { $0 }
      }
    }
    #expect(level == expected)
    await store.close()
  }

  @Test("An admission that violates the schema fails alone in its batch, and later ones succeed")
  func culpritAlone() async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL()) { $0.admissionLanes = 1 }
    let good = Fixture.registration()
    let bad = Fixture.registration()
    for registration in [good, bad] { _ = try await store.register(registration) }
    _ = try await store.run { connection throws(StoreError) in
      let id = Hex.encode(bad.key.keyID.bytes)
      return try connection.ask(
        Call("ALTER TABLE attested_keys ADD CHECK (key_id <> '\\x\(id)' OR counter = 0)")
      ).changes
    }
    let hold = try await RowHold(good.key.keyID, in: store)
    // In any order.
    async let first = store.admit(Fixture.use(of: good.key, 1, window: 8))
    async let second = Self.answer(store, Fixture.use(of: bad.key, 1))
    async let third = store.admit(Fixture.use(of: good.key, 2, window: 8))
    await hold.release()
    #expect(try await first == .admitted)
    #expect(try await third == .admitted)
    guard case .failure(.failed(let reason)) = await second else {
      Issue.record("\(await second)")
      return
    }
    #expect(reason.hasPrefix("23514"))
    #expect(try await store.admit(Fixture.use(of: good.key, 3)) == .admitted)
    await store.close()
  }

  @Test("Calls over the limit are refused immediately; waiting calls are served")
  func overload() async throws {
    let server = try await PostgresServer.shared()
    let store = try Self.store(at: await server.newURL() + "&application_name=crowded") {
      $0.mostWaiting = 3
      $0.mostAtOnce = 1
      $0.admissionLanes = 1
      // Longer than any delay of a test machine.
      ($0.lockTimeout, $0.statementTimeout, $0.patience) = (.seconds(60), .seconds(60), .seconds(60))
    }
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    let hold = try await RowHold(registration.key.keyID, in: store)
    let admit = { counter in Task { await Self.answer(store, Fixture.use(of: registration.key, counter)) } }
    // One call waits for the row, and three wait for that call.
    let first = admit(1)
    try await Self.eventually {
      try await server.sql(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'crowded' AND wait_event_type = 'Lock'") == [
          "1"
        ]
    }
    let others = (2...4).map(admit)
    try await Self.eventually { store.countOfWaitingAdmissions == 3 }
    await #expect(throws: StoreError.overloaded) { try await store.admit(Fixture.use(of: registration.key, .max)) }
    await hold.release()
    #expect(await first.value == .success(.admitted))
    // In any order of arrival.
    for task in others {
      switch await task.value {
      case .success(.admitted), .success(.counterReplayed): break
      case let answer: Issue.record("\(answer)")
      }
    }
    await store.close()
  }

  @Test("Revocations and changes do not wait for registrations that wait")
  func urgentCalls() async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    let (held, other) = (Fixture.registration(), Fixture.registration())
    for registration in [held, other] { _ = try await store.register(registration) }
    let position = try await store.changes(after: nil).position
    // The connection of registrations is busy until the end.
    let hold = try await RowHold(held.key.keyID, in: store)
    let waiting = Task { try await store.register(Fixture.registration()) }
    #expect(try await store.revoke(other.key.keyID, at: Fixture.now))
    #expect(try await store.changes(after: position).changes == [.key(other.key.keyID)])
    await hold.release()
    _ = try await waiting.value
    await store.close()
  }

  @Test("A row that stays locked for too long refuses the calls that need it")
  func heldRow() async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL()) { $0.lockTimeout = .milliseconds(100) }
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    let hold = try await RowHold(registration.key.keyID, in: store)
    await #expect(throws: StoreError.locked) { try await store.admit(Fixture.use(of: registration.key, 1)) }
    await hold.release()
    try await Self.eventually { try await store.admit(Fixture.use(of: registration.key, 2)) == .admitted }
    await store.close()
  }

  @Test("A group-commit queue without further calls reports its recovery", arguments: [true, false])
  func healsUnasked(_ endsConnection: Bool) async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL()
    let name = endsConnection ? "healing" : "patient"
    let store = try Self.store(at: url + "&application_name=\(name)") {
      $0.lockTimeout = endsConnection ? .seconds(60) : .milliseconds(100)
      ($0.statementTimeout, $0.patience) = (.seconds(60), .seconds(60))
    }
    let other = try Self.store(at: url)
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    let hold = try await RowHold(registration.key.keyID, in: other)
    async let answer = Self.answer(store, Fixture.use(of: registration.key, 1))
    if endsConnection {
      let waiting = "FROM pg_stat_activity WHERE application_name = '\(name)' AND wait_event_type = 'Lock'"
      try await Self.eventually { try await server.sql("SELECT pg_terminate_backend(pid) \(waiting)") == ["t"] }
    }
    guard case .failure = await answer else {
      Issue.record("\(await answer)")
      return
    }
    await hold.release()
    try await Self.eventually { store.health == .healthy }
    await store.close()
    await other.close()
  }

  @Test("Batches of two gates with the same keys and nonces never deadlock")
  func noDeadlock() async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL()
    let stores = try (0..<2).map { _ in try Self.store(at: url) }
    var keys: [DeviceKey] = []
    for _ in 0..<40 {
      let registration = Fixture.registration()
      _ = try await stores[0].register(registration)
      keys.append(registration.key)
    }
    let all = keys
    for round in UInt32(0)..<10 {
      let nonces = (0..<40).map { _ in Fixture.nonce() }
      // Two keys use each nonce at two gates, in opposite orders.
      let answers = try await StoreInvariant.tally(160) { number in
        let (gate, index) = (number % 2, number / 2 % 40)
        let key = all[gate == 0 ? index : 39 - index]
        let nonce = nonces[(index * 7 + number / 80) % 40]
        return try await stores[gate].admit(
          Fixture.use(of: key, round * 10 + UInt32(number / 40) + 1, over: nonce, window: 63))
      }
      #expect(answers[.admitted, default: 0] <= 40)
    }
    #expect(try await server.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'") == ["0"])
    for store in stores { await store.close() }
  }

  @Test("A nonce that is removed between an admission's snapshot and its insertion is not valid again")
  func forgottenMeanwhile() async throws {
    let server = try await PostgresServer.shared()
    let url = try await server.newURL() + "&application_name=forgetting"
    let stores = try (0..<3).map { _ in
      // Longer than any delay of a test machine.
      try Self.store(at: url) {
        ($0.lockTimeout, $0.statementTimeout, $0.patience) = (.seconds(60), .seconds(60), .seconds(60))
      }
    }
    let registration = Fixture.registration()
    let nonce = Fixture.nonce()
    _ = try await stores[0].register(registration)
    #expect(try await stores[0].admit(Fixture.use(of: registration.key, 1, over: nonce)) == .admitted)
    let waiting = """
      SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'forgetting' AND wait_event_type = 'Lock'
      """
    let hold = try await RowHold(registration.key.keyID, in: stores[1])
    async let replay = stores[0].admit(Fixture.use(of: registration.key, 2, over: nonce))
    try await Self.eventually { try await server.sql(waiting) == ["1"] }
    let forgotten = Task { try await stores[2].forgetNonces(issuedBy: Fixture.now) }
    // The call either waits for the admission, as it should, or has deleted the nonce.
    try await Self.eventually {
      let isGone = try await server.sql("SELECT COUNT(*) FROM \(Self.schema(in: url)).spent_nonces") == ["0"]
      return try await server.sql(waiting) == ["2"] || isGone
    }
    await hold.release()
    #expect(try await replay == .nonceSpent)
    try await forgotten.value
    #expect(try await stores[0].admit(Fixture.use(of: registration.key, 3, over: nonce)) == .nonceSpent)
    for store in stores { await store.close() }
  }

  @Test(
    "A damaged row is an error of the store and does not crash the process",
    arguments: [("app_id", "'nonsense'"), ("environment", "'moon'"), ("category", "-1"), ("counter", "NULL")])
  func damagedRow(_ column: String, _ value: String) async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    _ = try await store.run { connection throws(StoreError) in
      _ = try connection.ask(Call("ALTER TABLE attested_keys ALTER counter DROP NOT NULL"))
      return try connection.ask(Call("UPDATE attested_keys SET \(column) = \(value)")).changes
    }
    await #expect(throws: StoreError.corrupt(reason: "attested_keys.\(column) is malformed")) {
      try await store.record(of: registration.key.keyID)
    }
    // Other rows and the reported health are not affected.
    #expect(store.health == .healthy)
    #expect(try await store.register(Fixture.registration()) == .inserted)
    await store.close()
  }

  @Test("A page names a key with a damaged row, and the pages go on after it", arguments: [1, 2, 9])
  func damagedPage(_ limit: Int) async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    let ids = StoreInvariant.sorted(try await StoreInvariant.registeredAndroidKeys(3, in: store).map(\.keyID))
    _ = try await store.run { connection throws(StoreError) in
      try connection.ask(
        Call("UPDATE android_keys SET evidence = 'level=tee' WHERE key_id = $1", Parameter(ids[1].bytes))
      ).changes
    }
    let pages = try await StoreInvariant.readableKeys(in: store, limit: limit)
    #expect(pages.read == [ids[0], ids[2]])
    #expect(pages.unreadable == [UnreadableKey(ids[1], reason: "attested_keys.android is malformed")])
    await #expect(throws: StoreError.corrupt(reason: "attested_keys.android is malformed")) {
      try await store.entries(after: nil, limit: 9)
    }
    // An operator can name it, and remove it.
    let named = try await store.keys(hashPrefix: KeyHash(of: ids[1]).text, limit: 9)
    #expect(named == KeyPage([], unreadable: pages.unreadable, next: nil))
    #expect(try await store.remove([ids[1]], unusedSince: nil) == 1)
    #expect(try await StoreInvariant.readableKeys(in: store, limit: limit).unreadable.isEmpty)
    await store.close()
  }

  @Test(
    "Damaged rows, also more than a page of them, keep the receipts of no other key from being exchanged",
    arguments: [false, true])
  func damagedReceipts(isExchanged: Bool) async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    let ids = try await StoreInvariant.dueKeys(6, isExchanged: isExchanged, in: store)
    for id in ids[1...3] {
      _ = try await store.run { connection throws(StoreError) in
        try connection.ask(
          Call("UPDATE attested_keys SET environment = 'moon' WHERE key_id = $1", Parameter(id.bytes))
        ).changes
      }
    }
    for limit in [1, 2, 3, 9] {
      let due = try await StoreInvariant.dueReceipts(limit: limit, in: store).map(\.key.keyID)
      #expect(due == Array([ids[0], ids[4], ids[5]].prefix(limit)), "\(limit)")
    }
    await store.close()
  }

  @Test("A closed store refuses calls")
  func closed() async throws {
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    try await store.open()
    await store.close()
    await #expect(throws: StoreError.closed) { try await store.register(Fixture.registration()) }
    await #expect(throws: StoreError.closed) { try await store.admit(Fixture.use(of: Fixture.key(), 1)) }
  }

  @Test("A server that may lose acknowledged writes is reported")
  func findings() async throws {
    // The shared server does not flush and has no standby.
    let store = try Self.store(at: await PostgresServer.shared().newURL())
    let texts = try await store.findings(isThorough: false).map(\.text)
    for word in ["fsync is off", "full_page_writes is off", "no synchronous standby"] {
      #expect(texts.contains { $0.hasPrefix(word) }, "\(word)")
    }
    await store.close()
  }

  // MARK: Tools

  private static func answer(_ store: PostgresStore, _ use: KeyUse) async -> Result<Admittance, StoreError> {
    do throws(StoreError) { return .success(try await store.admit(use)) } catch { return .failure(error) }
  }

  private static func schema(in url: String) -> Substring {
    let rest = url[(url.firstRange(of: "search_path%3D")?.upperBound ?? url.endIndex)...]
    return rest.prefix { $0 != "&" }
  }

  /// Polls `question` until it returns `true`; an error counts as `false`.
  private static func eventually(_ question: () async throws -> Bool) async throws {
    let start = ContinuousClock.now
    while (try? await question()) != true {
      guard .now - start < .seconds(60) else { throw WaitedTooLong() }
      await Task.yield()
    }
  }

  private struct WaitedTooLong: Error {}
}

/// Keeps the row of a key locked through another connection of the store.
private struct RowHold: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let task: Task<Void, any Error>

  /// Returns once the row is locked.
  init(_ keyID: KeyID, in store: PostgresStore) async throws {
    let (held, isHeld) = AsyncStream<Void>.makeStream()
    task = Task { [gate] in
      _ = try await store.run { connection throws(StoreError) in
        try connection.transaction { connection throws(StoreError) -> Bool? in
          _ = try connection.ask(
            Call("SELECT 1 FROM attested_keys WHERE key_id = $1 FOR UPDATE", Parameter(keyID.bytes)))
          isHeld.yield()
          gate.wait()
          return true
        }
      }
    }
    for await _ in held { break }
  }

  func release() async {
    gate.signal()
    _ = try? await task.value
  }
}
