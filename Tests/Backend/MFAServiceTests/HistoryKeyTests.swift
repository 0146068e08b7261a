import ByteCoding
import Crypto
import Foundation
import GRDB
@testable import MFADomain
import MFAFixtures
@testable import MFAStore
import TestSupport
import Testing

@Suite("The key of the history", .serialized)
struct HistoryKeyTests {
  /// The operator's key, as its file contains it.
  private static func wrapping() throws -> KeyEncryptionKeys {
    try KeyEncryptionKeys([("a", Array(repeating: 1, count: 32))])
  }

  private static let instant = Timestamp(seconds: 1_767_225_600)

  /// Opens the vault of `store` and writes `count` entries.
  @discardableResult
  private static func write(_ count: Int, in store: any Store) async throws -> Vault {
    let vault = try await Vault.open(in: store, with: wrapping(), entropy: .system, at: instant)
    for _ in 0..<count { try await note(in: store) }
    return vault
  }

  private static func note(in store: any Store) async throws {
    try await store.write {
      try $0.note(
        .userLocked, by: NamedActor(historyName: "test", requestID: "\(UUID())"), account: nil, at: instant)
    }
  }

  private static func trail(_ store: any Store) async throws -> AuditTrail {
    AuditTrail(store, try await Vault.historyKeys(in: store, with: wrapping()))
  }

  /// An attack with write access to the database and without the keys: removes entries, and numbers and hashes the
  /// others again, as older versions hashed entries.
  private static func forge(
    _ store: any Store, keepingKeyNumbers: Bool, _ keep: @escaping @Sendable (AuditEntry) -> Bool
  ) async throws {
    try await store.write { records in
      let sql = try #require((records as? SQLRecords)?.sql)
      let kept = try records.auditEntries(after: 0, atMost: 1000).map(\.entry).filter(keep)
      try sql.run("DELETE FROM audit", [])
      var (sequence, previous): (Int64, [UInt8]) = (0, AuditEntry.origin)
      for entry in kept {
        sequence += 1
        let again = AuditEntry(
          sequence: sequence, at: entry.at, requestID: entry.requestID, actor: entry.actor, account: entry.account,
          event: entry.event, detail: entry.detail, previous: previous,
          keyNumber: keepingKeyNumbers ? entry.keyNumber : nil)
        previous = unkeyedHash(of: again)
        try records.append(again, hash: previous)
      }
    }
  }

  /// SHA-256 over the previous hash and every field with its length, as in version 6 of the schema.
  private static func unkeyedHash(of entry: AuditEntry) -> [UInt8] {
    var digest = SHA256()
    digest.update(data: entry.previous)
    for field in [
      String(entry.sequence), String(entry.at.milliseconds), entry.requestID, entry.actor, entry.account ?? "",
      entry.account == nil ? "-" : "+", entry.event, entry.detail,
    ] {
      digest.update(data: Array("\(field.utf8.count):".utf8))
      digest.update(data: Array(field.utf8))
    }
    return Array(digest.finalize())
  }

  @Test(
    "X-050 a history with removed entries does not verify after numbering and hashing the others again",
    arguments: TestDatabase.allCases)
  func forged(_ database: TestDatabase) async throws {
    for keepsKeyNumbers in [true, false] {
      let store = try await database.open()
      try await Self.write(4, in: store)
      #expect(try await Self.trail(store).verify().entries == 5)
      #expect(try await Self.trail(store).verify().fault == nil)
      try await Self.forge(store, keepingKeyNumbers: keepsKeyNumbers) { $0.sequence != 3 }
      let key = try #require(try await Vault.historyKeys(in: store, with: Self.wrapping())).newest
      #expect(
        try await Self.trail(store).verify().fault
          == (keepsKeyNumbers ? .changed(sequence: 1) : .keyWithoutEntries(key: key)))
    }
  }

  @Test("X-050 neither an emptied history verifies, nor one whose key is missing", arguments: TestDatabase.allCases)
  func emptied(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let key = try await Self.write(2, in: store).historyKeys.newest
    try await Self.forge(store, keepingKeyNumbers: false) { _ in false }
    #expect(try await Self.trail(store).verify().fault == .keyWithoutEntries(key: key))
    _ = try await store.write { records in
      try (records as? SQLRecords)?.sql.run("DELETE FROM data_keys WHERE purpose = 'history'", [])
    }
    #expect(try await Self.trail(store).verify().fault == .noKey)
  }

  @Test(
    "X-050 signed heads reveal removed last entries, and a history that was written again under a new key",
    arguments: TestDatabase.allCases)
  func heads(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let vault = try await Self.write(3, in: store)
    let heads = HistoryHeads(store, vault.historyKeys, clock: WallClock { Self.instant })
    let head = try #require(try await heads.next())
    #expect(HistoryHead("\(head)") == head && vault.historyKeys.verifies(head) && head.sequence == 4)
    #expect(try await Self.trail(store).verify(known: [(head.sequence, head.hash)]).fault == nil)
    // A change of one character breaks the signature.
    let other = "\(head)".replacingOccurrences(of: "4:", with: "3:")
    #expect(HistoryHead(other).map(vault.historyKeys.verifies) != true)
    _ = try await store.write { records in
      try (records as? SQLRecords)?.sql.run("DELETE FROM audit WHERE sequence > 2", [])
    }
    #expect(try await Self.trail(store).verify().fault == nil)
    #expect(
      try await Self.trail(store).verify(known: [(head.sequence, head.hash)]).fault == .cutOff(at: 2, expected: 4))
    // A running backend detects it and continues from there.
    await #expect(throws: HistoryHeads.Lost(head: head)) { try await heads.next() }
    #expect(try await heads.next()?.sequence == 2)
    // If the key is removed too, the next start creates another one, which does not verify the old head.
    try await Self.forge(store, keepingKeyNumbers: false) { _ in true }
    _ = try await store.write { records in
      try (records as? SQLRecords)?.sql.run("DELETE FROM data_keys WHERE purpose = 'history'", [])
    }
    let renewed = try await Self.write(2, in: store)
    #expect(renewed.historyBegan == 3)
    #expect(try await Self.trail(store).verify().fault == nil)
    #expect(!renewed.historyKeys.verifies(head))
  }

  @Test(
    "X-050 a new key begins with an entry that covers the older entries, which keep their keys",
    arguments: TestDatabase.allCases)
  func resealed(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let first = try await Self.write(2, in: store)
    let wrapping = try Self.wrapping()
    _ = try await Resealing(store, wrapping).run()
    let second = try await Self.write(2, in: store)
    #expect(second.historyKeys.newest > first.historyKeys.newest && second.historyBegan == nil)
    let entries = try await store.read { try $0.auditEntries(after: 0, atMost: 100).map(\.entry) }
    #expect(entries.map(\.keyNumber) == [5, 5, 5, 7, 7, 7])
    #expect(entries[3].event == "history.keyed" && entries[3].detail == "key=7 before=3")
    #expect(try await Self.trail(store).verify().fault == nil)
    // A process that still has the old key writes nothing, because the entry would not verify.
    store.authenticateHistory(with: first.historyKeys)
    await #expect(throws: MFAStoreError.self) { try await Self.note(in: store) }
    store.authenticateHistory(with: second.historyKeys)
    // An entry with the old key after the first entry with the new key.
    _ = try await store.write {
      try ($0 as? SQLRecords)?.sql.run("UPDATE audit SET key_number = 5 WHERE sequence = 5", [])
    }
    #expect(try await Self.trail(store).verify().fault == .olderKey(sequence: 5))
    _ = try await store.write { try ($0 as? SQLRecords)?.sql.run("DELETE FROM audit WHERE sequence > 3", []) }
    #expect(try await Self.trail(store).verify().fault == .keyWithoutEntries(key: 7))
  }

  @Test(
    "X-050 entries of an older version verify, and the first entry with a key covers them",
    arguments: TestDatabase.allCases)
  func older(_ database: TestDatabase) async throws {
    let store = try await database.open()
    try await store.write { records in
      var previous = AuditEntry.origin
      for sequence in 1...3 {
        let entry = AuditEntry(
          sequence: Int64(sequence), at: Self.instant, requestID: "r", actor: "a", account: nil, event: "test",
          detail: "", previous: previous, keyNumber: nil)
        previous = Self.unkeyedHash(of: entry)
        try records.append(entry, hash: previous)
      }
    }
    let vault = try await Self.write(1, in: store)
    #expect(vault.historyBegan == 4)
    let verdict = try await Self.trail(store).verify()
    #expect(verdict.fault == nil && verdict.unkeyed == 3 && verdict.entries == 5)
    // The entries from the second on are hashed again. The first entry with a key reveals the change.
    try await store.write { records in
      let sql = try #require((records as? SQLRecords)?.sql)
      var previous: [UInt8]?
      for (entry, hash) in try records.auditEntries(after: 0, atMost: 3) {
        let again = AuditEntry(
          sequence: entry.sequence, at: entry.at, requestID: entry.requestID,
          actor: entry.sequence == 2 ? "other" : entry.actor, account: nil, event: entry.event, detail: entry.detail,
          previous: previous ?? entry.previous, keyNumber: nil)
        let rehashed = entry.sequence == 1 ? hash : Self.unkeyedHash(of: again)
        try sql.run(
          "UPDATE audit SET actor = ?, previous = ?, hash = ? WHERE sequence = ?",
          [.text(again.actor), .blob(again.previous), .blob(rehashed), .integer(again.sequence)])
        previous = rehashed
      }
    }
    #expect(try await Self.trail(store).verify().fault == .broken(sequence: 4))
  }

  @Test("X-050 verification writes nothing", arguments: TestDatabase.allCases)
  func readOnly(_ database: TestDatabase) async throws {
    let store = try await database.open()
    #expect(try await Self.trail(store).verify().fault == .noKey)
    #expect(try await store.read { try $0.dataKeys() } == [])
    await #expect(throws: MFAStoreError.self) { try await Self.note(in: store) }
  }
}
