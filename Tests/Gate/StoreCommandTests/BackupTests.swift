import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GRDB
import Glibc
import SQLiteStore
import StoreConformance
import TestSupport
import Testing

@Suite("Backup and restore", .serialized)
struct BackupTests {
  static let pairs = StoreKind.allCases.flatMap { source in StoreKind.allCases.map { (source, $0) } }

  @Test("A backup of either store restores into either, with all values of keys of both platforms", arguments: pairs)
  func fromAndTo(_ source: StoreKind, _ target: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let (from, to) = (try await source.newURL(in: folder), try await target.newURL(in: folder))
      let entries = try await Self.fill(source.open(from))
      let made = try await store("backup", folder + "/backup.db", "--store", from, "--json")
      #expect(made.status == 0, "\(made.errors)")
      #expect(made.object["keys"] as? Int == 5)
      let mode = try FileManager.default.attributesOfItem(atPath: folder + "/backup.db")[.posixPermissions] as? Int
      #expect(mode == 0o600)

      let other = try target.open(to)
      _ = try await other.register(Fixture.registration())
      await other.close()
      let restored = try await store("restore", folder + "/backup.db", "--store", to)
      #expect(restored.status == 0, "\(restored.errors)")
      let after = try target.open(to)
      #expect(try await after.entries(after: nil, limit: 10) == entries)
      #expect(try await after.findings(isThorough: true).filter { $0.area == .data } == [])
      await after.close()
      let leftovers = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.contains(".new-") }
      #expect(leftovers == [])
    }
  }

  @Test(
    "A store that root makes in a folder of the gate's user belongs to that user", .enabled(if: geteuid() == 0))
  func owner() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      _ = try await Self.fill(StoreKind.sqlite.open(url))
      #expect(try await store("backup", folder + "/b", "--store", url).status == 0)
      for (name, command) in [("restored", ["restore", folder + "/b"]), ("migrated", ["migrate"])] {
        let place = "\(folder)/\(name)"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        try #require(chown(place, 65_534, 65_534) == 0)
        let done = try await store(command + ["--store", "sqlite://\(place)/state.db"])
        #expect(done.status == 0, "\(done.errors)")
        let files = try FileManager.default.contentsOfDirectory(atPath: place)
        #expect(files.contains("state.db"), "\(files)")
        for file in files {
          var status = stat()
          let found = lstat("\(place)/\(file)", &status)
          #expect(found == 0 && status.st_uid == 65_534, "\(command): \(file)")
        }
      }
    }
  }

  @Test("After a restore no earlier nonce is valid, neither by its key nor by its time", arguments: StoreKind.allCases)
  func nonces(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let before = try kind.open(url)
      let registration = Fixture.registration()
      _ = try await before.register(registration)
      let challenges = Challenges(storage: before)
      try await challenges.prepare()
      let (spent, fresh) = try (
        #require(challenges.issue(at: .now())?.nonce), #require(challenges.issue(at: .now())?.nonce)
      )
      #expect(try await store("backup", folder + "/b", "--store", url).status == 0)
      #expect(try await before.admit(Fixture.use(of: registration.key, 1, over: spent)) == .admitted)
      await before.close()
      let restored = try await store("restore", folder + "/b", "--store", url)
      #expect(restored.status == 0, "\(restored.errors)")

      let after = try kind.open(url)
      let renewed = Challenges(storage: after)
      try await renewed.prepare()
      for nonce in [spent, fresh] {
        // Refused by its key, for a gate with the keys in the store.
        #expect(throws: NonceRejection.self) { try renewed.check(nonce, at: .now()) }
        // Refused by its time, in case the keys are in a file that was not replaced.
        #expect(try await after.admit(Fixture.use(of: registration.key, 2, over: nonce)) == .nonceSpent)
      }
      let good = try #require(renewed.issue(at: .now().advanced(by: .milliseconds(1)))?.nonce)
      #expect(try await after.admit(Fixture.use(of: registration.key, 3, over: good)) == .admitted)
      await after.close()
    }
  }

  @Test("A restore is refused while a gate uses the store, and changes nothing", arguments: StoreKind.allCases)
  func inUse(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let gate = try kind.open(url)
      let entries = try await Self.fill(gate, closing: false)
      #expect(try await store("backup", folder + "/b", "--store", url).status == 0)
      _ = try await gate.register(Fixture.registration())
      let refused = try await store("restore", folder + "/b", "--store", url)
      #expect(refused.status == 69)
      #expect(refused.errors.first?.contains("in use by a gate or another command") == true, "\(refused.errors)")
      #expect(try await gate.entries(after: nil, limit: 10).count == entries.count + 1)
      await gate.close()
      let restored = try await store("restore", folder + "/b", "--store", url)
      #expect(restored.status == 0, "\(restored.errors)")
    }
  }

  @Test("A restore into PostgreSQL waits shortly for connections that are closing")
  func leaving() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.postgres.newURL(in: folder)
      let whole = try StoreKind.postgres.whole(url)
      _ = try whole.migrate()
      // The restore waits for one second, in which a busy machine may not close the connection: some tries count.
      var isReplaced = false
      for _ in 1...5 where !isReplaced {
        let gate = try StoreKind.postgres.open(url)
        _ = try await gate.entries(after: nil, limit: 1)
        let closing = Task {
          try await Task.sleep(for: .milliseconds(300))
          await gate.close()
        }
        do {
          let kept = try whole.replace(with: ArchiveHeader(at: .now())) { _ in }
          #expect(kept == nil)
          isReplaced = true
        } catch is StoreInUse {}
        try await closing.value
      }
      #expect(isReplaced)
      let next = try StoreKind.postgres.open(url)
      #expect(try await next.entries(after: nil, limit: 1) == [])
      await next.close()
    }
  }

  @Test(
    "A damaged backup is refused, and the store stays unchanged",
    arguments: StoreKind.allCases.flatMap { kind in Damage.allCases.map { (kind, $0) } })
  func damaged(_ kind: StoreKind, _ damage: Damage) async throws {
    try await Places.withTemporaryFolder { folder in
      let (url, file) = (try await kind.newURL(in: folder), folder + "/backup.db")
      let entries = try await Self.fill(kind.open(url))
      #expect(try await store("backup", file, "--store", url).status == 0)
      try damage.apply(to: file, receipt: #require(entries.map(\.receipt).first { !$0.isEmpty }))
      let refused = try await store("restore", file, "--store", url)
      #expect(refused.status == 65, "\(refused.output) \(refused.errors)")
      #expect(refused.errors.count == 2 && refused.errors[0].hasPrefix("error: "), "\(refused.errors)")
      let after = try kind.open(url)
      #expect(try await after.entries(after: nil, limit: 10) == entries)
      await after.close()
    }
  }

  @Test("A backup is a snapshot, although keys are added and removed meanwhile", arguments: StoreKind.allCases)
  func whileWorking(_ kind: StoreKind) async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await kind.newURL(in: folder)
      let gate = try kind.open(url)
      for _ in 0..<1200 { _ = try await gate.register(Fixture.registration()) }
      let first = try #require(try await gate.entries(after: nil, limit: 1).first).record.key.keyID
      // During the copy one key is removed and another is added. The copy must show neither change.
      let whole = try kind.whole(url)
      var seen: [KeyEntry] = []
      let late = Fixture.registration()
      let isDisturbed = DispatchSemaphore(value: 0)
      try whole.copyOut { page in
        if seen.isEmpty {
          Task.detached {
            _ = try await gate.remove([first], unusedSince: nil)
            _ = try await gate.register(late)
            isDisturbed.signal()
          }
          isDisturbed.wait()
        }
        seen += page
      }
      #expect(seen.count == 1200)
      #expect(seen.contains { $0.record.key.keyID == first })
      #expect(!seen.contains { $0.record.key.keyID == late.key.keyID })
      await gate.close()
    }
  }

  @Test("An existing file is not overwritten, and a missing one is reported")
  func files() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      _ = try await Self.fill(StoreKind.sqlite.open(url))
      let path = String(url.dropFirst("sqlite://".count))
      #expect(try await store("backup", path, "--store", url).status == 73)
      #expect(try await store("restore", folder + "/none", "--store", url).status == 66)
      let unreadable = try await store("restore", folder, "--store", url)
      #expect(unreadable.status == 66 && unreadable.errors.joined().contains("cannot be read: Is a directory"))
      #expect(try await store("backup", folder + "/b", "--store", "sqlite://\(folder)/none.db").status == 66)
      // A folder in the place of the store gets no lock file next to it.
      let place = folder + "/place"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
      for command in [["check"], ["migrate"], ["rotate"], ["backup", folder + "/b"]] {
        let refused = try await store(command + ["--store", "sqlite://\(place)"])
        #expect(refused.status == 69 && refused.errors.first?.contains(": Is a directory") == true, "\(refused)")
      }
      #expect(!FileManager.default.fileExists(atPath: place + ".lock"))
      #expect(try await store("backup", folder + "/b").status == 64)
      #expect(try await store("backup", folder + "/b", "--store", "nonsense").status == 64)
    }
  }

  @Test("A backup that another command has opened is restored without a file next to it, as from a read-only folder")
  func openedBackup() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      _ = try await Self.fill(StoreKind.sqlite.open(url))
      let media = folder + "/50% of #1?"
      try FileManager.default.createDirectory(atPath: media, withIntermediateDirectories: false)
      let file = media + "/b"
      #expect(try await store("backup", file, "--store", url).status == 0)
      // A gate's store has a write-ahead log, and so has a backup that a command has opened as a store.
      let queue = try DatabaseQueue(path: file)
      try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
      try queue.close()
      #expect(try FileManager.default.contentsOfDirectory(atPath: media) == ["b"])
      let restored = try await store("restore", file, "--store", url)
      #expect(restored.status == 0, "\(restored.errors)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: media) == ["b"])
    }
  }

  @Test("A backup whose file appears during the copy leaves that file as it is, and reports that it exists")
  func overtaken() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      _ = try await Self.fill(StoreKind.sqlite.open(url))
      let path = folder + "/b"
      let archive = OvertakenArchive(archive: SQLiteArchive(path: String(url.dropFirst("sqlite://".count))), path: path)
      #expect(throws: BackupFile.BackupError.exists) { try BackupFile.write(archive, to: path, at: Fixture.now) }
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == OvertakenArchive.other)
      let leftovers = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.contains(".new-") }
      #expect(leftovers == [])
    }
  }

  @Test("After an interrupted restore the store refuses calls until a restore completes")
  func cutOff() async throws {
    try await Places.withTemporaryFolder { folder in
      let url = try await StoreKind.sqlite.newURL(in: folder)
      let entries = try await Self.fill(StoreKind.sqlite.open(url))
      #expect(try await store("backup", folder + "/b", "--store", url).status == 0)
      let lock = String(url.dropFirst("sqlite://".count)) + ".lock"
      try Data("restoring\n".utf8).write(to: URL(fileURLWithPath: lock))
      let refusing = try StoreKind.sqlite.open(url)
      await #expect(throws: StoreError.self) { try await refusing.open() }
      await refusing.close()
      // The file from before both restores is kept: the current one may come from the first restore.
      let kept = String(url.dropFirst("sqlite://".count)) + ".replaced"
      try Data("the first one".utf8).write(to: URL(fileURLWithPath: kept))
      #expect(try await store("restore", folder + "/b", "--store", url).status == 0)
      let after = try StoreKind.sqlite.open(url)
      #expect(try await after.entries(after: nil, limit: 10) == entries)
      await after.close()
      #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) == Data("the first one".utf8))
      #expect(try await store("restore", folder + "/b", "--store", url).status == 0)
      #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) != Data("the first one".utf8))
    }
  }

  /// Registers three keys of iOS, with counters, a window and a revocation, and two of Android, one of them revoked.
  static func fill(_ store: any GateStore, closing: Bool = true) async throws -> [KeyEntry] {
    for isRevoked in [false, true] {
      let registration = Fixture.registration(of: Fixture.androidKey())
      _ = try await store.register(registration)
      _ = try await store.admit(Fixture.use(of: registration.key))
      if isRevoked { _ = try await store.revoke(registration.key.keyID, at: Fixture.now) }
    }
    for number in UInt32(1)...3 {
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      _ = try await store.admit(Fixture.use(of: registration.key, number * 10, window: 8))
      if number == 2 { _ = try await store.revoke(registration.key.keyID, at: Fixture.now) }
    }
    // One with a current metric, and one with an outdated one.
    let app = try #require(AppID(Fixture.key().app.text))
    for (number, due) in try await store.dueReceipts(of: [app], at: Fixture.now, limit: 2).enumerated() {
      let settlement = ReceiptSettlement(
        receipt: due.receipt.reversed(), risk: KeyRisk(metric: 3 + number, at: Fixture.now),
        next: number == 0 ? Fixture.now : nil)
      #expect(try await store.settle(due, as: settlement))
    }
    let entries = try await store.entries(after: nil, limit: 10)
    #expect(Set(entries.compactMap(\.record.risk)).count == 2)
    if closing { await store.close() }
    return entries
  }
}

/// A store whose copy lasts until another program has created the file at `path`.
private struct OvertakenArchive: StoreArchive {
  static let other = Data("another backup".utf8)

  let archive: SQLiteArchive
  let path: String

  var place: String { archive.place }

  func schema() throws(StoreError) -> SchemaState { try archive.schema() }
  func migrate() throws(StoreError) -> SchemaChange { try archive.migrate() }

  func copyOut(_ take: ([KeyEntry]) throws -> Void) throws {
    try archive.copyOut(take)
    try Self.other.write(to: URL(fileURLWithPath: path))
  }

  func replace(
    with start: ArchiveHeader, _ feed: (_ take: ([KeyEntry]) throws -> Void) throws -> Void
  ) throws -> String? {
    try archive.replace(with: start, feed)
  }
}

/// Kinds of damage to a file.
enum Damage: String, CaseIterable, Sendable {
  case bitOfReceipt, cutShort, notADatabase, otherDatabase

  func apply(to file: String, receipt: [UInt8]) throws {
    let url = URL(fileURLWithPath: file)
    var data = try Data(contentsOf: url)
    switch self {
    case .bitOfReceipt:
      let place = try #require(data.range(of: Data(receipt.prefix(64))))
      data[place.lowerBound + 9] ^= 1
    case .cutShort: data = data.prefix(data.count / 2)
    case .notADatabase: data = Data(repeating: 0x2A, count: 8192)
    case .otherDatabase:
      try FileManager.default.removeItem(at: url)
      return try withExtendedLifetime(DatabaseQueue(path: file)) {
        try $0.write { try $0.execute(sql: "CREATE TABLE something (else_ INTEGER)") }
      }
    }
    try data.write(to: url)
  }
}
