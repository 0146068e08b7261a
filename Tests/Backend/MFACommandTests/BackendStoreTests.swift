import Foundation
import Glibc
import MFAFixtures
import PostgresServers
import TestSupport
import Testing

@Suite("The database as a whole", .serialized, .timeLimit(.minutes(5)))
struct BackendStoreTests {
  @Test("a backup restores the accounts of its time, also into PostgreSQL, and the history still verifies")
  func roundTrip() async throws {
    try await BackendInstallation.make { place in
      let phone = TestPhone(username: "ada")
      try await place.enrol(phone)
      let backup = place.folder + "/monday.db"
      // A running backend does not prevent a backup, but prevents a restore.
      try await place.serving { _ in
        let made = try await place.operate("store", "backup", backup)
        #expect(made.exit == .code(0) && made.output.first?.hasPrefix("\(backup): 1 accounts, ") == true, "\(made)")
        let refused = try await place.operate("store", "restore", backup)
        #expect(refused.exit == .code(69), "\(refused)")
        #expect(refused.errors.first == "error: \(place.database): in use by a backend or another command")
      }
      var status = stat()
      #expect(lstat(backup, &status) == 0 && status.st_mode & 0o777 == 0o600)
      let folder = try await place.operate("store", "restore", place.folder)
      #expect(folder.exit == .code(66), "\(folder)")
      #expect(folder.errors.first == "error: \(place.folder): cannot be read: Is a directory")
      let again = try await place.operate("store", "backup", backup)
      #expect(again.exit == .code(73) && again.errors.first == "error: \(backup): file exists", "\(again)")
      try await place.enrol(TestPhone(username: "bob"))
      #expect(try await place.users().count == 2)
      let restored = try await place.operate("store", "restore", backup)
      #expect(restored.exit == .code(0), "\(restored)")
      #expect(
        restored.output.first?.hasPrefix("\(place.database): 1 accounts restored, from \(place.database) at 20") == true
      )
      #expect(try await place.users() == ["ada devices=1"])
      let check = try await place.operate("store", "check")
      #expect(check.exit == .code(0) && check.output == ["\(place.database): no problems found"], "\(check)")
      #expect(try await place.operate("audit", "verify").exit == .code(0))
      // The same file into the other database.
      let url = try await PostgresServer.shared().newURL()
      try place.configure(database: url)
      let missing = try await place.operate("store", "restore", backup)
      #expect(missing.exit == .code(66) && missing.errors.last == "hint: create it with: mfa-backend store migrate")
      #expect(try await place.operate("store", "migrate").output.first?.contains("migrated from version 0 to ") == true)
      #expect(try await place.operate("store", "migrate").output.first?.contains("up to date, version ") == true)
      let moved = try await place.operate("store", "restore", backup)
      #expect(moved.exit == .code(0), "\(moved)")
      #expect(try await place.users() == ["ada devices=1"])
      #expect(try await place.operate("store", "check").exit == .code(0))
      // And back.
      let second = try await place.operate("store", "backup", place.folder + "/tuesday.db", "--json")
      #expect(try JSONValue(Data(second.output.joined().utf8))["accounts"] == 1, "\(second)")
      try await place.serving { _ async throws in
        let refused = try await place.operate("store", "restore", backup)
        #expect(refused.exit == .code(69), "\(refused)")
      }
      try place.configure()
      #expect(try await place.operate("store", "restore", place.folder + "/tuesday.db").exit == .code(0))
      #expect(try await place.users() == ["ada devices=1"])
      #expect(try await place.operate("audit", "verify").exit == .code(0))
    }
  }

  @Test("a backup has no sessions, challenges and codes, and a restore ends those of the database")
  func withoutSessions() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let file = place.folder + "/mfa.db"
      let backup = place.folder + "/monday.db"
      _ = try await BackendInstallation.sql(
        """
        INSERT INTO sessions SELECT 's', id, NULL, 'debug', 'full', '', 0, 0, 9999999999999, 0, 0, NULL FROM users
        """, file)
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      #expect(try await BackendInstallation.sql("SELECT COUNT(*) FROM sessions", backup) == ["(0,)"])
      #expect(try await BackendInstallation.sql("SELECT COUNT(*) FROM sessions", file) == ["(1,)"])
      #expect(try await place.operate("store", "restore", backup).exit == .code(0))
      #expect(try await BackendInstallation.sql("SELECT COUNT(*) FROM sessions", file) == ["(0,)"])
    }
  }

  @Test("a backup of an older version is migrated before it is restored, and one of a newer version is refused")
  func otherVersions() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let backup = place.folder + "/monday.db"
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      try await place.enrol(TestPhone(username: "bob"))
      // The last version added this table, whose rows are in no backup, and this column.
      _ = try await BackendInstallation.sql("DROP TABLE app_offers", backup)
      _ = try await BackendInstallation.sql("ALTER TABLE oath_tokens DROP COLUMN name", backup)
      _ = try await BackendInstallation.sql("UPDATE mfa_backup SET schema = schema - 1", backup)
      let restored = try await place.operate("store", "restore", backup)
      #expect(restored.exit == .code(0), "\(restored)")
      #expect(try await place.users() == ["ada devices=1"])
      #expect(try await place.operate("store", "check").exit == .code(0))
      _ = try await BackendInstallation.sql("UPDATE mfa_backup SET schema = schema + 2", backup)
      let newer = try await place.operate("store", "restore", backup)
      #expect(newer.exit == .code(65) && newer.errors.first?.hasSuffix("a newer version wrote it") == true, "\(newer)")
      #expect(try await place.users() == ["ada devices=1"])
    }
  }

  @Test(
    "a command on a database of an older version changes nothing, and names the command that migrates it",
    arguments: ["sqlite", "postgres"])
  func olderVersion(_ kind: String) async throws {
    try await BackendInstallation.make { place in
      let isSQLite = kind == "sqlite"
      let schema = "older_" + UUID().uuidString.prefix(8).lowercased()
      let server: PostgresServer? = try await isSQLite ? nil : PostgresServer.shared()
      if let server {
        try await server.sql("CREATE SCHEMA \(schema)")
        try place.configure(database: server.url(schema: schema))
      }
      func change(_ statement: String) async throws {
        if let server {
          try await server.sql("SET search_path = \(schema); \(statement)")
        } else {
          _ = try await BackendInstallation.sql(statement, place.folder + "/mfa.db")
        }
      }
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      #expect(try await place.operate("admin", "users").exit == .code(0))
      // The last version added this table and this column.
      try await change("DROP TABLE app_offers")
      try await change("ALTER TABLE oath_tokens DROP COLUMN name")
      let (table, version) =
        isSQLite ? ("grdb_migrations", "CAST(identifier AS INTEGER)") : ("schema_version", "version")
      try await change("DELETE FROM \(table) WHERE \(version) = (SELECT MAX(\(version)) FROM \(table))")
      for command in [
        ["audit", "export"], ["audit", "search"], ["audit", "verify"], ["admin", "users"], ["keys", "rotate"],
        ["admin", "tables", "--development"], ["admin", "rows", "users", "--development"],
      ] {
        let run = try await ChildProcess.run(Places.product("mfa-backend"), command + ["-c", place.file])
        #expect(run.exit == .code(66), "\(command): \(run)")
        #expect(run.errors.first?.contains(": its tables have version ") == true, "\(command): \(run)")
        #expect(run.errors.last?.hasSuffix("or migrate it: mfa-backend store migrate") == true, "\(command): \(run)")
      }
      #expect(try await place.operate("store", "migrate").output.first?.contains(": migrated from version ") == true)
      #expect(try await place.operate("admin", "users").exit == .code(0))
    }
  }

  @Test("the file of the history gets every entry that is written after a restore, although its numbers come again")
  func exportAfterRestore() async throws {
    try await BackendInstallation.make { place in
      let (copy, backup) = (place.folder + "/audit.jsonl", place.folder + "/monday.db")
      try place.configure("audit: { file: \(copy) }")
      func history() async throws -> [String] { try await place.operate("audit", "export").output }
      func copied() -> [String] {
        ((try? String(contentsOfFile: copy, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
      }
      try await place.serving { _ in
        // A new export begins with the next entry.
        while !FileManager.default.fileExists(atPath: copy + ".position") {
          try await Task.sleep(for: .milliseconds(5))
        }
      }
      try await place.enrol(TestPhone(username: "ada"))
      let before = try await history().count
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      try await place.enrol(TestPhone(username: "bob"))
      #expect(Array(copied().suffix(1)) == Array(try await history().suffix(1)))
      #expect(try await place.operate("store", "restore", backup).exit == .code(0))
      // As many entries as the file has had with these numbers, and more.
      for _ in 1...8 {
        #expect(try await place.operate("admin", "lock", "ada").exit == .code(0))
        #expect(try await place.operate("admin", "unlock", "ada").exit == .code(0))
      }
      let after = try await history()
      try await place.serving { _ in
        while copied().last != after.last { try await Task.sleep(for: .milliseconds(5)) }
      }
      #expect(after.count > before && after.dropFirst(before).allSatisfy(copied().contains), "\(before)")
    }
  }

  @Test("each table is part of a backup, or one that a restore empties or leaves")
  func tables() async throws {
    try await BackendInstallation.make { place in
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      let names = try await BackendInstallation.sql(
        "SELECT name FROM sqlite_master WHERE type = 'table'", place.folder + "/mfa.db")
      let tables = names.joined().matches(of: /'([a-z_]+)'/).map { String($0.output.1) }
        .filter { !$0.hasPrefix("sqlite_") && $0 != "grdb_migrations" }
      #expect(tables.count > 20)
      let listed = try ProjectFile.text("Sources/Backend/MFAStore/Archive/ArchivedTables.swift")
      for table in tables { #expect(listed.contains("\"\(table)\""), "\(table)") }
    }
  }

  @Test("a changed backup, a foreign file and the database itself are refused, and nothing changes")
  func unfitFiles() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let backup = place.folder + "/monday.db"
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      _ = try await BackendInstallation.sql("UPDATE users SET admin = 1", backup)
      let changed = try await place.operate("store", "restore", backup)
      #expect(changed.exit == .code(65), "\(changed)")
      #expect(changed.errors.first == "error: \(backup): damaged: its rows differ from those written")
      _ = try await BackendInstallation.sql("DELETE FROM devices", backup)
      #expect(try await place.operate("store", "restore", backup).errors.first?.contains(" rows, but ") == true)
      try place.write("no database", toPrivate: "text")
      let foreign = try await place.operate("store", "restore", place.folder + "/text")
      #expect(foreign.exit == .code(65) && foreign.errors.first?.contains("not a backup") == true, "\(foreign)")
      #expect(try await place.operate("store", "restore", place.folder + "/absent").exit == .code(66))
      let itself = try await place.operate("store", "restore", place.folder + "/mfa.db")
      #expect(itself.exit == .code(64), "\(itself)")
      #expect(try await place.users() == ["ada devices=1"])
      let nowhere = try await place.operate("store", "backup", place.folder + "/nowhere/file.db")
      #expect(nowhere.exit == .code(73), "\(nowhere)")
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: place.folder).allSatisfy { !$0.contains(".part") })
    }
  }

  @Test("store check reports a changed history, another keys file, and a file that is not a database")
  func problems() async throws {
    try await BackendInstallation.make { place in
      #expect(try await place.operate("store", "check").exit == .code(66))
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      #expect(try await place.operate("store", "check").exit == .code(0))
      try await place.enrol(TestPhone(username: "ada"))
      let file = place.folder + "/mfa.db"
      _ = try await BackendInstallation.sql("UPDATE audit SET actor = 'x' WHERE sequence = 2", file)
      let changed = try await place.operate("store", "check")
      #expect(changed.exit == .code(1) && changed.output.contains("problem: entry 2 was changed"), "\(changed)")
      try place.write(try await place.mfa("keys", "make").output.joined(), toPrivate: "keys.json")
      let keys = try await place.operate("store", "check", "--json")
      #expect(keys.exit == .code(1))
      let finding = try JSONValue(Data(keys.output.joined().utf8))["findings"]?[0]
      #expect(finding?["area"] == "keys", "\(keys)")
      for name in ["mfa.db", "mfa.db-wal", "mfa.db-shm"] {
        try? FileManager.default.removeItem(atPath: place.folder + "/" + name)
      }
      try place.write(String(repeating: "no database ", count: 500), toPrivate: "mfa.db")
      let broken = try await place.operate("store", "check")
      #expect(broken.exit == .code(1), "\(broken)")
      #expect(broken.output.contains { $0.contains("file is not a database") }, "\(broken)")
      // What cannot be read is not called damaged.
      try FileManager.default.removeItem(atPath: file)
      try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
      let unread = try await place.operate("store", "check")
      #expect(unread.exit == .code(69), "\(unread)")
    }
  }
}
