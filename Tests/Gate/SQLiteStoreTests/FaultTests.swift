import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GRDB
import GateFixtures
import StoreConformance
import Testing

@testable import SQLiteStore

@Suite("The SQLite store refuses calls during a failure and recovers without help")
struct FaultTests {
  private let folder: TemporaryFolder
  private let store: SQLiteStore

  init() throws {
    folder = try TemporaryFolder()
    store = SQLiteStore(path: folder.file("state.db"), busyTimeout: 0.05)
  }

  /// Returns the result of a registration: the store's answer or its error.
  private func register(_ registration: Registration = Fixture.registration()) async -> Result<Insertion, StoreError> {
    do throws(StoreError) {
      return .success(try await store.register(registration))
    } catch {
      return .failure(error)
    }
  }

  @Test("A missing folder is reported, and used as soon as it exists")
  func missingFolder() async throws {
    let store = SQLiteStore(path: folder.file("later/state.db"))
    await #expect(throws: StoreError.unreachable(reason: "No such file or directory")) { try await store.open() }
    try FileManager.default.createDirectory(atPath: folder.file("later"), withIntermediateDirectories: false)
    try await store.open()
  }

  @Test(
    "A restore keeps the replaced file with all its commits, even if another program has it open",
    arguments: [false, true]
  )
  func keepsReplaced(_ isRead: Bool) async throws {
    let registration = Fixture.registration()
    _ = try await store.register(registration)
    await store.close()
    let path = folder.file("state.db")
    // Another program, such as sqlite3, with a commit that is only in the write-ahead log.
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: path, configuration: configuration)
    try await other.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
      try db.execute(sql: "UPDATE attested_keys SET bundle_version = 'late'")
      if isRead {
        try db.execute(sql: "BEGIN")
        _ = try Row.fetchAll(db, sql: "SELECT * FROM attested_keys")
      }
    }
    // A file of an earlier restore, which belongs to the file that was kept then.
    try Data("of another file".utf8).write(to: URL(fileURLWithPath: path + ".replaced-wal"))
    let kept = try SQLiteArchive(path: path, busyTimeout: 0.05).replace(with: ArchiveHeader(at: Fixture.now)) { _ in }
    #expect(kept == path + ".replaced")
    #expect(FileManager.default.fileExists(atPath: path + ".replaced-wal") == isRead)
    let copy = try DatabaseQueue(path: path + ".replaced")
    #expect(
      try await copy.read { try String.fetchAll($0, sql: "SELECT bundle_version FROM attested_keys") } == ["late"])
    #expect(!FileManager.default.fileExists(atPath: path + ".replaced.new"))
    try copy.close()
    let restored = SQLiteStore(path: path)
    #expect(try await restored.count() == 0)
    await restored.close()
    withExtendedLifetime(other) {}
  }

  @Test("A file that is not a database is refused")
  func otherFile() async throws {
    try Data(repeating: 0x2A, count: 4096).write(to: URL(fileURLWithPath: store.path))
    guard case .failure(.corrupt) = await register() else {
      Issue.record("accepted as a database")
      return
    }
    try FileManager.default.removeItem(atPath: store.path)
    #expect(await register() == .success(.inserted))
  }

  @Test("A lock file that is a link is refused, and the link's target is not changed", arguments: [true, false])
  func linkedLock(isSymbolic: Bool) async throws {
    let (target, lock) = (folder.file("target"), store.path + ".lock")
    try Data("kept".utf8).write(to: URL(fileURLWithPath: target))
    if isSymbolic {
      try FileManager.default.createSymbolicLink(atPath: lock, withDestinationPath: target)
    } else {
      try FileManager.default.linkItem(atPath: target, toPath: lock)
    }
    guard case .failure(.unreachable(let reason)) = await register() else {
      Issue.record("the link was followed")
      return
    }
    #expect(reason.contains("find out who created it"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data("kept".utf8))
    try FileManager.default.removeItem(atPath: lock)
    #expect(await register() == .success(.inserted))
  }

  @Test("A file that another process keeps locked is refused")
  func locked() async throws {
    try await store.open()
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let other = try DatabaseQueue(path: store.path, configuration: configuration)
    try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
    #expect(await register() == .failure(.locked))
    try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
    #expect(await register() == .success(.inserted))
  }

  @Test("A full disk refuses writes and stores nothing")
  func full() async throws {
    try await store.open()
    let pages = try await store.writes.run { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 }
    try await store.writes.run { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
    var registration = Fixture.registration()
    var answer = await register(registration)
    // SQLite first uses the free space inside the file.
    for _ in 0..<50 where answer == .success(.inserted) {
      registration = Fixture.registration()
      answer = await register(registration)
    }
    #expect(answer == .failure(.full))
    #expect(try await store.record(of: registration.key.keyID) == nil)
    try await store.writes.run { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
    #expect(await register(registration) == .success(.inserted))
  }

  @Test("A read-only connection is closed, and the next call uses a new one")
  func readOnly() async throws {
    try await store.writes.run { try $0.execute(sql: "PRAGMA query_only = ON") }
    #expect(await register() == .failure(.readOnly))
    #expect(await register() == .success(.inserted))
  }

  @Test("A file of a newer version is not changed")
  func newerSchema() async throws {
    try await store.writes.run { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9 of the future')") }
    await store.close()
    let older = SQLiteStore(path: store.path)
    await #expect(throws: StoreError.unreachable(reason: "the store was written by a newer version")) {
      try await older.open()
    }
  }

  @Test(
    "A damaged row is an error of the store and does not crash the process",
    arguments: [
      ("app_id", "'nonsense'"), ("app_id", "x'FF'"), ("environment", "'moon'"), ("category", "'x'"), ("category", "-1"),
      ("registered_at", "'x'"), ("revoked_at", "'never'"), ("counter", "'1x'"),
    ])
  func damagedRow(_ column: String, _ value: String) async throws {
    let registration = Fixture.registration()
    _ = await register(registration)
    try await store.writes.run { db in
      try db.execute(sql: "PRAGMA ignore_check_constraints = ON; UPDATE attested_keys SET \(column) = \(value)")
    }
    await #expect(throws: StoreError.corrupt(reason: "attested_keys.\(column) is malformed")) {
      try await store.record(of: registration.key.keyID)
    }
    #expect(store.health == .healthy)
    // Other rows are not affected.
    #expect(await register() == .success(.inserted))
  }

  @Test("A page names a key with a damaged row, and the pages go on after it", arguments: [1, 2, 9])
  func damagedPage(_ limit: Int) async throws {
    let ids = StoreInvariant.sorted(try await StoreInvariant.registeredAndroidKeys(3, in: store).map(\.keyID))
    try await store.writes.run { [id = Data(ids[1].bytes)] db in
      try db.execute(sql: "UPDATE attested_keys SET android = 'level=tee' WHERE key_id = ?", arguments: [id])
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
  }

  /// Damages of rows, for the name of a table and what is set there.
  static let damages = [
    "attested_keys SET environment = 'moon'", "attested_keys SET android = 'level=tee'",
    "attested_keys SET android = '\(Fixture.androidKey().androidEvidence ?? "")'", "receipts SET receipt = 7",
    "receipt_exchanges SET failures = 'x'",
  ]

  @Test(
    "Damaged rows, also more than a page of them, keep the receipts of no other key from being exchanged",
    arguments: damages, [false, true])
  func damagedReceipts(_ damage: String, isExchanged: Bool) async throws {
    let ids = try await StoreInvariant.dueKeys(6, isExchanged: isExchanged, in: store)
    for id in ids[1...3] {
      try await store.writes.run { db in
        try db.execute(sql: "UPDATE \(damage) WHERE key_id = ?", arguments: [Data(id.bytes)])
      }
    }
    for limit in [1, 2, 3, 9] {
      let due = try await StoreInvariant.dueReceipts(limit: limit, in: store).map(\.key.keyID)
      #expect(due == Array([ids[0], ids[4], ids[5]].prefix(limit)), "\(limit)")
    }
    let findings = try await store.findings(isThorough: true).map(\.text)
    #expect(
      findings.contains { $0.hasPrefix("3 receipts whose rows cannot be read") } == !damage.hasPrefix("attested_keys"),
      "\(findings)")
  }

  @Test("Damaged keys keep the risks of no other key from being counted")
  func damagedTally() async throws {
    let ids = try await StoreInvariant.dueKeys(3, isExchanged: false, in: store)
    try await store.writes.run { db in
      try db.execute(sql: "UPDATE attested_keys SET app_id = x'FF' WHERE key_id = ?", arguments: [Data(ids[0].bytes)])
      try db.execute(sql: "UPDATE attested_keys SET risk = 'x' WHERE key_id = ?", arguments: [Data(ids[1].bytes)])
    }
    let tally = try await store.riskTally(after: nil, limit: 9)
    #expect(tally.counts == [RiskTally.Group(app: "AAABBBCCC1.com.example.app", metric: nil): 1])
  }

  @Test("A damaged id keeps no other key of an attestation key from being registered or revoked")
  func damagedSibling() async throws {
    let keys = (0..<4).map { _ in Fixture.androidKey(serial: [7, 7, 7]) }
    for key in keys.dropLast() { #expect(await register(Fixture.registration(of: key)) == .success(.inserted)) }
    try await store.writes.run { [id = Data(keys[0].keyID.bytes)] db in
      try db.execute(sql: "PRAGMA ignore_check_constraints = ON")
      try db.execute(sql: "UPDATE attested_keys SET key_id = x'00' WHERE key_id = ?", arguments: [id])
    }
    #expect(await register(Fixture.registration(of: keys[3])) == .success(.inserted))
    let revoked = try await store.revokeKeys(attestedLike: keys[3].keyID, above: 2, at: Fixture.now)
    #expect(Set(revoked.keys) == Set(keys.dropFirst().map(\.keyID)))
  }

  @Test("After a damaged change everything counts as changed, and later changes are reported")
  func damagedChange() async throws {
    let keys = [Fixture.registration(), Fixture.registration()]
    for key in keys { #expect(await register(key) == .success(.inserted)) }
    let start = try await store.changes(after: nil).position
    for key in keys { #expect(try await store.revoke(key.key.keyID, at: Fixture.now)) }
    try await store.writes.run { [position = start.value + 1] db in
      try db.execute(sql: "PRAGMA ignore_check_constraints = ON")
      try db.execute(sql: "UPDATE changes SET key_id = x'00' WHERE position = ?", arguments: [position])
    }
    let news = try await store.changes(after: start)
    #expect(news == Changes([.everything], upTo: ChangePosition(start.value + 2)))
    #expect(try await store.restore(keys[0].key.keyID))
    #expect(try await store.changes(after: news.position).changes == [.key(keys[0].key.keyID)])
  }

  @Test("A damaged decision keeps no other one from being stored, listed or forgotten")
  func damagedDecision() async throws {
    let registrations = [Fixture.registration(), Fixture.registration()]
    for registration in registrations { #expect(await register(registration) == .success(.inserted)) }
    let ids = registrations.map(\.key.keyID)
    func decision(_ id: KeyID, _ code: String) -> KeyDecision {
      KeyDecision(
        keyHash: KeyHash(of: id).text, kind: .unverified, at: Fixture.now, code: code, step: "step",
        address: "192.0.2.7", requestID: "request")
    }
    func listed(_ id: KeyID) async throws -> [String?] {
      try await store.decisions(of: id, before: nil, limit: 9).decisions.map(\.code)
    }
    try await store.store([decision(ids[0], "a"), decision(ids[0], "b")], atMost: 9)
    try await store.writes.run { try $0.execute(sql: "UPDATE key_decisions SET times = 'x', decided_at = 'x'") }
    try await store.store([decision(ids[0], "b"), decision(ids[1], "c")], atMost: 9)
    #expect(try await listed(ids[0]) == ["b"])
    #expect(try await listed(ids[1]) == ["c"])
    let later = Fixture.now.advanced(by: .seconds(10))
    try await store.forgetDecisions(DecisionRetention(longest: .seconds(1), most: 9), at: later)
    #expect(try await store.reads.run { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM key_decisions") } == 0)
  }

  @Test("A job that violates the schema fails alone in its batch")
  func culpritAlone() async throws {
    let hold = await QueueHold(store.writes)
    async let good = StoreInvariant.tally(20) { [store] _ in try await store.register(Fixture.registration()) }
    let bad = Task { [store] in
      try await store.writes.run { try $0.execute(sql: "INSERT INTO nonce_watermark VALUES (2, 0)") }
    }
    await hold.release(after: 21)
    #expect(try await good == [.inserted: 20])
    await #expect(throws: StoreError.self) { try await bad.value }
  }

  @Test("Closing a connection while another one works releases none of the process's file locks")
  func locksStay() async throws {
    try await store.open()
    let registration = Fixture.registration()
    _ = await register(registration)
    let hold = await QueueHold(store.writes)
    await #expect(throws: StoreError.self) {
      try await store.reads.run { _ in throw DatabaseError(resultCode: .SQLITE_IOERR) }
    }
    // Opens the file again.
    #expect(try await store.record(of: registration.key.keyID) != nil)
    #expect(try isLocked())
    await hold.release(after: 0)
    #expect(await register() == .success(.inserted))
    #expect(try isLocked())
  }

  /// Returns whether another process would find SQLite's shared lock on the open file, which protects its log. The
  /// descriptor of this check stays open, because closing it would release the lock.
  private func isLocked() throws -> Bool {
    let descriptor = open(store.path, O_RDWR | O_CLOEXEC)
    try #require(descriptor >= 0)
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    // SHARED_FIRST and SHARED_SIZE of SQLite's file format.
    (lock.l_start, lock.l_len) = (0x4000_0002, 510)
    // F_OFD_GETLK of Linux, which Glibc's module does not have. It also reports the locks of the same process.
    try #require(fcntl(descriptor, 36, &lock) == 0)
    return lock.l_type != Int16(F_UNLCK)
  }

  @Test("A malformed row does not close the connection for other calls")
  func keepsConnection() async throws {
    try await store.open()
    _ = try await store.reads.run { try $0.execute(sql: "PRAGMA temp.user_version = 7") }
    await #expect(throws: StoreError.self) {
      try await store.reads.run { _ in throw StoreError.corrupt(reason: "a row") }
    }
    #expect(try await store.reads.run { try Int.fetchOne($0, sql: "PRAGMA temp.user_version") } == 7)
  }

  @Test("A malformed row does not change the store's health, a damaged file does", arguments: [true, false])
  func healthOfRow(isWrite: Bool) async throws {
    try await store.open()
    let queue = isWrite ? store.writes : store.reads
    await #expect(throws: StoreError.corrupt(reason: "a row")) {
      try await queue.run { _ in throw StoreError.corrupt(reason: "a row") }
    }
    #expect(store.health == .healthy)
    // Before the queue's own probe, which finds the file whole again.
    await #expect(throws: StoreError.self) {
      try await queue.run { _ in throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
    }
    guard case .failing(_, .corrupt) = store.health else {
      Issue.record("the file's fault is not reported: \(store.health)")
      return
    }
  }

  @Test("Calls over the limit are refused immediately; waiting calls are served")
  func overload() async throws {
    let store = SQLiteStore(path: folder.file("small.db"), mostWaiting: 3)
    try await store.open()
    let hold = await QueueHold(store.writes)
    async let waiting = StoreInvariant.tally(3) { _ in try await store.register(Fixture.registration()) }
    while store.writes.countOfWaiting < 3, !Task.isCancelled { await Task.yield() }
    await #expect(throws: StoreError.overloaded) { try await store.register(Fixture.registration()) }
    await hold.release(after: 3)
    #expect(try await waiting == [.inserted: 3])
    #expect(try await store.register(Fixture.registration()) == .inserted)
  }

  @Test("A closed store refuses calls")
  func closed() async throws {
    try await store.open()
    await store.close()
    #expect(await register() == .failure(.closed))
  }

  @Test("Errors do not contain the values of a statement, so that nonces and key ids stay out of logs")
  func errorsWithoutArguments() async throws {
    let nonce = Fixture.nonce()
    do {
      try await store.writes.run { db in
        try db.execute(
          sql: "INSERT INTO nonce_watermark (id, issued_at) VALUES (2, ?)", arguments: [nonce.text])
      }
      Issue.record("the schema accepted the row")
    } catch {
      #expect(!"\(error)".contains(nonce.text))
    }
  }
}
