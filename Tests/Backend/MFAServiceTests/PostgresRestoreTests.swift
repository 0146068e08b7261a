import ByteCoding
import Foundation
import MFADomain
@testable import MFAStore
import OneTimePasswords
import PostgresServers
import TestSupport
import Testing

@Suite("Restores into PostgreSQL", .timeLimit(.minutes(2)))
struct PostgresRestoreTests {
  @Test("a restore has the time limit of a migration, and does not delete row by row")
  func large() async throws {
    try await Places.withTemporaryFolder { folder in
      let empty = StoreArchive(path: folder + "/empty.db")
      _ = try empty.migrate()
      let backup = try StoreBackup.write(
        empty, named: "empty", to: folder + "/backup.db", at: Timestamp(milliseconds: 0))
      // A database of its own: connections of other tests count as backends.
      let server = try await PostgresServer.shared()
      try await server.sql("CREATE DATABASE restored")
      let url = server.url(schema: "public").replacing("/postgres?", with: "/restored?")
      let archive = StoreArchive(postgres: url)
      _ = try archive.migrate()
      try PostgresDatabase(url: url, trace: nil).transaction { sql in
        try sql.run(
          "INSERT INTO users (id, name_key, username, created_at, admin) VALUES ('u', 'ada', 'ada', 0, 0)", [])
        try sql.run(
          """
          CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'deleted row by row'; END $$
          """, [])
        try sql.run("CREATE TRIGGER refuse BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION refuse()", [])
      }
      try backup.restore(into: archive, with: .ephemeral(.system), at: Timestamp(milliseconds: 1))
      var limit: String?
      try archive.replacing(ArchivedTables.dropped + ArchivedTables.all.map(\.name)) { sql in
        limit = try sql.rows("SELECT current_setting('statement_timeout') AS text", []).first?.text("text")
        #expect(try sql.rows("SELECT id FROM users", []).isEmpty)
      }
      #expect(limit == "3599s")
    }
  }

  @Test("a backup removes what killed processes have left for its path, also one with the id of this process")
  func leftDrafts() async throws {
    try await Places.withTemporaryFolder { folder in
      let archive = StoreArchive(path: folder + "/mfa.db")
      _ = try archive.migrate()
      let drafts = ["4194301", "\(ProcessInfo.processInfo.processIdentifier)"].map { folder + "/backup.db.new-" + $0 }
      for draft in drafts { try Data("a draft".utf8).write(to: URL(fileURLWithPath: draft)) }
      let backup = try StoreBackup.write(
        archive, named: "empty", to: folder + "/backup.db", at: Timestamp(milliseconds: 0))
      #expect(backup.accounts == 0)
      let names = try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("backup") }
      #expect(names == ["backup.db"])
    }
  }

  @Test(
    "exports of the history continue at its restored end, or where they were before",
    arguments: TestDatabase.allCases)
  func exports(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      var archive = StoreArchive(path: folder + "/mfa.db")
      if database == .postgres {
        let server = try await PostgresServer.shared()
        try await server.sql("CREATE DATABASE exported")
        archive = StoreArchive(postgres: server.url(schema: "public").replacing("/postgres?", with: "/exported?"))
      }
      _ = try archive.migrate()
      func position(_ sequence: Int64, _ byte: UInt8) -> AuditPosition {
        AuditPosition(sequence: sequence, hash: [UInt8](repeating: byte, count: 32))
      }
      /// Appends entries whose hashes have this byte, and exports.
      func write(_ numbers: ClosedRange<Int64>, _ byte: UInt8, _ exports: [String: AuditPosition]) throws {
        try archive.replacing(["codes"]) { sql in
          let records = SQLRecords(sql: sql)
          for number in numbers {
            let entry = AuditEntry(
              sequence: number, at: Timestamp(milliseconds: 0), requestID: "r", actor: "key", account: nil,
              event: "code.refused", detail: "", previous: AuditEntry.origin, keyNumber: nil)
            try records.append(entry, hash: position(number, byte).hash)
          }
          for (name, position) in exports {
            try records.save(
              AuditExport(name: name, position: position, holder: UUID(), heldUntil: Timestamp(milliseconds: 0)))
          }
        }
      }
      try write(1...3, 1, ["syslog": position(3, 1)])
      let backup = try StoreBackup.write(
        archive, named: "three", to: folder + "/backup.db", at: Timestamp(milliseconds: 0))
      try write(4...5, 1, ["syslog": position(5, 1), "webhook": position(2, 1)])
      try backup.restore(into: archive, with: .ephemeral(.system), at: Timestamp(milliseconds: 1))
      let found = try archive.reading { sql in
        try ["syslog", "webhook", "restored"].map { try SQLRecords(sql: sql).auditExport($0)?.position }
      }
      #expect(found == [position(3, 1), position(2, 1), position(3, 1)])
    }
  }

  @Test(
    "apps that users have added come back with a restore, and offers of apps do not", arguments: TestDatabase.allCases)
  func addedApps(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      var archive = StoreArchive(path: folder + "/mfa.db")
      if database == .postgres {
        let server = try await PostgresServer.shared()
        try await server.sql("CREATE DATABASE added")
        archive = StoreArchive(postgres: server.url(schema: "public").replacing("/postgres?", with: "/added?"))
      }
      _ = try archive.migrate()
      let now = Timestamp(seconds: 1_767_225_600)
      let user = User(id: UUID(), username: try Username("ada"), createdAt: now)
      let session = LoginSession(
        id: UUID(), userID: user.id, deviceID: nil, binding: .debugBuild, scope: .full, methods: ["mfa"],
        authenticatedAt: now, createdAt: now, expiresAt: now.advanced(by: .seconds(60)), rotatedAt: now)
      let (id, sealed) = (UUID(), Sealed(bytes: [1, 2, 3]))
      let app = try #require(
        OATHToken(
          id: id, serial: try TokenSerial("app-x"), maker: "", name: try AppName("Tablet"), userID: user.id,
          kind: .totp,
          secret: sealed, algorithm: .sha256, digits: 8, period: 30, next: 7, drift: 1, createdAt: now,
          assignedAt: now, lastUsedAt: now))
      let offer = AppOffer(
        id: UUID(), sessionID: session.id, userID: user.id, name: try AppName("Laptop"), secret: sealed,
        parameters: .standard, expiresAt: now.advanced(by: AppOffer.lifetime))
      try archive.replacing(["codes"]) { sql in
        let records = SQLRecords(sql: sql)
        try records.insert(user)
        try records.insert(session)
        try records.insert(app)
        try records.save(offer)
        #expect(try records.appOffer(to: session.id) == offer)
      }
      let backup = try StoreBackup.write(archive, named: "apps", to: folder + "/backup.db", at: now)
      try archive.replacing(["codes"]) { try SQLRecords(sql: $0).removeToken(id) }
      try backup.restore(into: archive, with: .ephemeral(.system), at: now.advanced(by: .seconds(1)))
      let (apps, offers) = try archive.reading { sql in
        let records = SQLRecords(sql: sql)
        return (try records.tokens(of: user.id), try records.appOffers(of: user.id))
      }
      #expect(apps == [app] && offers == [])
    }
  }
}
