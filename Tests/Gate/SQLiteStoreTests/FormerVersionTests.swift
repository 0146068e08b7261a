import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GRDB
import GateFixtures
import StoreConformance
import Testing

@testable import SQLiteStore

@Suite("A SQLite store of the version before keys of Android devices")
struct FormerVersionTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("state.db")
  }

  /// The keys of the former store: one that was never used, one with a window of counters, and a revoked one.
  private static func entries() -> [KeyEntry] {
    (UInt32(0)..<3).map { number in
      let registration = Fixture.registration(of: Fixture.key(version: number == 0 ? nil : "\(number)"))
      let record = KeyRecord(
        key: registration.key, request: registration.request, registeredAt: registration.registeredAt,
        counter: SignCount(number * 10), lastUsedAt: number == 0 ? nil : Fixture.now,
        revokedAt: number == 2 ? Fixture.now : nil)
      // Of the counters 0 to 10, 8 was not used.
      return KeyEntry(
        record: record, usedCounters: number == 0 ? .max : .max & ~0b100, receipt: registration.receipt)
    }
    .sorted { $0.record.key.keyID.bytes.lexicographicallyPrecedes($1.record.key.keyID.bytes) }
  }

  /// Creates the file at `path` as the former version did.
  @discardableResult
  private static func write(
    _ entries: [KeyEntry], to path: String, version: String = "4 age of challenge keys"
  ) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    try SQLiteSchema.migrator.migrate(queue, upTo: version)
    try queue.write { db in for entry in entries { try insert(entry, in: db) } }
    return queue
  }

  /// The former version's statements, with all columns that it knew.
  private static func insert(_ entry: KeyEntry, in db: Database) throws {
    let (record, key) = (entry.record, entry.record.key)
    try db.cachedStatement(
      sql: """
        INSERT INTO attested_keys (
          key_id, public_key, app_id, environment, category, bundle_version, counter, used_counters,
          registration_nonce, attestation_digest, registered_at, last_seen_at, revoked_at, key_hash
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ).execute(arguments: [
      Data(key.keyID.bytes), Data(key.publicKey), key.app.text, key.environment.rawValue,
      key.validationCategory.map { Int64($0.rawValue) }, key.bundleVersion, Int64(record.counter.value),
      Int64(bitPattern: entry.usedCounters), Data(record.request.nonce.bytes),
      Data(record.request.attestationDigest.bytes), record.registeredAt.milliseconds,
      record.lastUsedAt?.milliseconds, record.revokedAt?.milliseconds, KeyHash(of: key.keyID).text,
    ])
    try db.cachedStatement(sql: "INSERT INTO receipts (key_id, receipt) VALUES (?, ?)")
      .execute(arguments: [Data(key.keyID.bytes), Data(entry.receipt)])
    try db.cachedStatement(sql: "INSERT INTO spent_nonces (nonce, issued_at) VALUES (?, ?)")
      .execute(arguments: [Data(record.request.nonce.bytes), record.request.nonce.issuedAt.milliseconds])
  }

  @Test("Opening it loses nothing: keys, counters, windows, revocations, receipts, nonces and challenge keys")
  func migrated() async throws {
    let entries = Self.entries()
    let ring = ChallengeKeyRing.random(madeAt: Fixture.now)
    let former = try Self.write(entries, to: path)
    try await former.write { try ChallengeKeyStatements(db: $0).replace(with: ring) }
    try former.close()
    #expect(try SQLiteArchive(path: path).schema().version == 4)

    let store = SQLiteStore(path: path)
    #expect(try await store.entries(after: nil, limit: 10) == entries)
    #expect(try await store.challengeKeys(orStoring: .random(madeAt: Fixture.now)) == ring)
    #expect(try SQLiteArchive(path: path).schema().isCurrent)
    for entry in entries {
      let (key, record) = (entry.record.key, entry.record)
      #expect(try await store.admit(Fixture.use(of: key, 100, over: record.request.nonce)) == .nonceSpent)
      if record.revokedAt != nil {
        #expect(try await store.admit(Fixture.use(of: key, 100)) == .revoked)
      } else if record.counter != .zero {
        #expect(try await store.admit(Fixture.use(of: key, 10, window: 8)) == .counterReplayed(stored: record.counter))
        #expect(try await store.admit(Fixture.use(of: key, 8, window: 8)) == .admitted)
      }
    }
    let android = Fixture.registration(of: Fixture.androidKey())
    #expect(try await store.register(android) == .inserted)
    #expect(try await store.admit(Fixture.use(of: android.key)) == .admitted)
    let page = try await store.keys(KeySelection(platform: .android), after: nil, limit: 10)
    #expect(page.records.map(\.key) == [android.key])
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  @Test("An older gate that has it open during the migration goes on with its keys, as in a graceful upgrade")
  func openDuringMigration() async throws {
    let former = try Self.write(Self.entries(), to: path)
    let late = Self.entries()
    let select = "SELECT * FROM attested_keys WHERE key_id >= ? ORDER BY key_id LIMIT 1"
    // The statements of the older gate, prepared before the migration.
    func readAll(_ entries: [KeyEntry]) async throws -> [SignCount] {
      try await former.read { db in
        try entries.map { entry in
          let statement = try db.cachedStatement(sql: select)
          let row = try #require(try Row.fetchOne(statement, arguments: [Data(entry.record.key.keyID.bytes)]))
          return try KeyRecord(row: row).counter
        }
      }
    }
    try await former.write { try Self.insert(late[0], in: $0) }
    #expect(try await readAll([late[0]]) == [late[0].record.counter])

    let store = SQLiteStore(path: path)
    let android = Fixture.registration(of: Fixture.androidKey())
    #expect(try await store.register(android) == .inserted)
    try await former.write { try Self.insert(late[1], in: $0) }
    #expect(try await readAll(Array(late[0...1])) == late[0...1].map(\.record.counter))
    #expect(try await store.record(of: late[1].record.key.keyID) == late[1].record)
    #expect(try await store.record(of: android.key.keyID)?.key == android.key)
    await store.close()
  }

  @Test("Receipts of the version before risk metrics are due, also those that a gate of it stores meanwhile")
  func dueReceipts() async throws {
    let former = try Self.write(Self.entries(), to: path, version: "5 keys of Android devices")
    let store = SQLiteStore(path: path)
    let app = try #require(AppID("AAABBBCCC1.com.example.app"))
    func due() async throws -> Set<KeyID> {
      Set(try await store.dueReceipts(of: [app], at: Fixture.now, limit: 10).map(\.key.keyID))
    }
    let active = Set(
      try await store.entries(after: nil, limit: 10).map(\.record).filter { $0.revokedAt == nil }.map(\.key.keyID))
    #expect(active.count == 2)
    #expect(try await due() == active)
    let late = Self.entries()[0]
    try await former.write { try Self.insert(late, in: $0) }
    #expect(try await due().subtracting(active) == (late.record.revokedAt == nil ? [late.record.key.keyID] : []))
    let keyID = try #require(active.first)
    try await former.write { db in
      try db.execute(
        sql: "UPDATE attested_keys SET revoked_at = 1 WHERE key_id = ?", arguments: [Data(keyID.bytes)])
    }
    #expect(try await !due().contains(keyID))
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  @Test("Android keys of the version before are counted, also those that a gate of it registers meanwhile")
  func attestationKeys() async throws {
    let serial: [UInt8] = [0x40, 7]
    let keys = (0..<3).map { _ in Fixture.androidKey(serial: serial) }
    let factory = Fixture.factoryKey(serial: serial)
    let former = try Self.write([], to: path, version: "6 risk metrics")
    try await former.write { db in
      for key in [keys[0], keys[1], factory] { try Self.insert(key, in: db) }
    }
    let store = SQLiteStore(path: path)
    func metric(of key: DeviceKey) async throws -> Int? {
      try await store.record(of: key.keyID)?.risk?.newest.metric
    }
    #expect(try await metric(of: keys[0]) == 2)
    #expect(try await metric(of: factory) == nil)
    try await former.write { try Self.insert(keys[2], in: $0) }
    #expect(try await metric(of: keys[1]) == 3)
    #expect(try await store.admit(Fixture.use(of: keys[2])) == .admitted)
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  /// The statement of the version before for a key of Android.
  private static func insert(_ key: DeviceKey, in db: Database) throws {
    let request = Fixture.registration(of: key).request
    try db.cachedStatement(
      sql: """
        INSERT INTO attested_keys (
          key_id, public_key, app_id, environment, counter, used_counters, registration_nonce, attestation_digest,
          registered_at, key_hash, android
        ) VALUES (?, ?, ?, ?, 0, -1, ?, ?, ?, ?, ?)
        """
    ).execute(arguments: [
      Data(key.keyID.bytes), Data(key.publicKey), key.app.text, key.environment.rawValue, Data(request.nonce.bytes),
      Data(request.attestationDigest.bytes), Fixture.now.milliseconds, KeyHash(of: key.keyID).text, key.androidEvidence,
    ])
  }

  @Test("An admission of an Android key does not write the index of attestation keys")
  func admissionLeavesIndex() async throws {
    let store = SQLiteStore(path: path)
    try await store.open()
    await store.close()
    try await DatabaseQueue(path: path).read { db in
      let name = "keys_by_attestation_key"
      let page = try #require(
        try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = ?", arguments: [name]))
      func opened(_ sql: String) throws -> Set<Int> {
        let steps = try Row.fetchAll(db, sql: "EXPLAIN " + sql)
        return Set(steps.filter { $0["opcode"] == "OpenWrite" }.map { $0["p2"] })
      }
      let use =
        "UPDATE attested_keys SET last_seen_at = 1 WHERE key_id = x'00' AND revoked_at IS NULL AND android IS NOT NULL"
      #expect(try !opened(use).contains(page))
      #expect(try opened("UPDATE attested_keys SET android = NULL WHERE key_id = x'00'").contains(page))
    }
  }

  @Test(
    "An index finds the keys of an attestation key",
    arguments: [
      AttestationKeyStatements.some, AttestationKeyStatements.active,
      KeyStatements.lookup.replacing(">= ?", with: ">= ? AND ? IS NOT NULL"),
    ])
  func attestationKeyPlan(_ sql: String) async throws {
    let store = SQLiteStore(path: path)
    try await store.open()
    await store.close()
    let plan = try await DatabaseQueue(path: path).read { db in
      try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql, arguments: [Data(), 1]).map { "\($0["detail"] as String)" }
    }
    #expect(plan.contains { $0.contains("INDEX keys_by_attestation_key (<expr>=?)") }, "\(plan)")
    #expect(
      !plan.contains { $0.contains("SCAN attested_keys") || $0.contains("SCAN s") || $0.contains("SCAN k") }, "\(plan)")
    #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
  }

  @Test(
    "An index finds what is due",
    arguments: [
      (RiskStatements.newReceipts, 2, "new_receipts"), (RiskStatements.dueReceipts, 3, "due_receipts"),
    ])
  func plan(_ sql: String, arguments: Int, index: String) async throws {
    let store = SQLiteStore(path: path)
    try await store.open()
    await store.close()
    let plan = try await DatabaseQueue(path: path).read { db in
      try Row.fetchAll(
        db, sql: "EXPLAIN QUERY PLAN " + sql,
        arguments: StatementArguments([DatabaseValue](repeating: .null, count: arguments))
      ).map { "\($0["detail"] as String)" }
    }
    #expect(plan.first?.contains("USING INDEX \(index)") == true, "\(plan)")
    #expect(!plan.contains { $0.contains("SCAN") || $0.contains("TEMP B-TREE") }, "\(plan)")
  }

  @Test("A gate of the former version refuses the migrated file")
  func refusedByFormer() async throws {
    let store = SQLiteStore(path: path)
    try await store.open()
    await store.close()
    // All that the former version knew. It compared the migrations of the file with these.
    var former = DatabaseMigrator()
    for name in SQLiteSchema.migrator.migrations.prefix(4) { former.registerMigration(name) { _ in } }
    let isSuperseded = try await DatabaseQueue(path: path).read { [former] db in try former.hasBeenSuperseded(db) }
    #expect(isSuperseded)
  }

  @Test("A backup that the former version wrote is restored, with every key")
  func formerBackup() throws {
    let entries = Self.entries()
    let backup = folder.file("backup.db")
    var digest = EntryDigest()
    for entry in entries { digest.add(entry) }
    let file = try Self.write(entries, to: backup)
    try file.write { [digest] db in
      try db.execute(sql: "CREATE TABLE sallyport_backup (made_at BIGINT, place TEXT, keys BIGINT, digest BLOB)")
      try db.execute(
        sql: "INSERT INTO sallyport_backup (made_at, place, keys, digest) VALUES (?, ?, ?, ?)",
        arguments: [Fixture.now.milliseconds, "sqlite://former.db", digest.count, Data(digest.bytes)])
    }
    try file.close()

    let archive = SQLiteArchive(path: path)
    _ = try archive.replace(with: ArchiveHeader(at: Fixture.now)) { try BackupFile(path: backup).read($0) }
    var restored: [KeyEntry] = []
    try archive.copyOut { restored += $0 }
    #expect(restored == entries)
  }
}
