import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Backups and restores that must not succeed, or not in full", .serialized, .timeLimit(.minutes(5)))
struct BackendRestoreTests {
  /// Calls `body` with a database with one account, and a backup of it.
  private func withBackup(_ body: (BackendInstallation, String) async throws -> Void) async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let backup = place.folder + "/monday.db"
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      try await body(place, backup)
    }
  }

  @Test("a restore cancels the account recoveries that were open at the backup")
  func recoveries() async throws {
    try await BackendInstallation.make { place in
      try await place.enrol(TestPhone(username: "ada"))
      let file = place.folder + "/mfa.db"
      _ = try await BackendInstallation.sql(
        """
        INSERT INTO recoveries (id, user_id, binding, address, code_hash, stop_failures, started_at, ready_at, expires_at)
        SELECT 'r', id, 'debug', '192.0.2.1', x'00', 0, 0, 1, 9999999999999 FROM users
        """, file)
      let backup = place.folder + "/monday.db"
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
      _ = try await BackendInstallation.sql("UPDATE recoveries SET outcome = 'cancelled', ended_at = 5", file)
      #expect(try await place.operate("store", "restore", backup).exit == .code(0))
      let state = "SELECT outcome, ended_at > 5 FROM recoveries"
      #expect(try await BackendInstallation.sql(state, file) == ["('cancelled', 1)"])
    }
  }

  @Test("a restore needs the keys file of the backup, and changes nothing without it")
  func otherKeys() async throws {
    try await withBackup { place, backup in
      try await place.enrol(TestPhone(username: "bob"))
      let keys = try String(contentsOfFile: place.folder + "/keys.json", encoding: .utf8)
      try place.write(try await place.mfa("keys", "make").output.joined(), toPrivate: "keys.json")
      let refused = try await place.operate("store", "restore", backup)
      #expect(refused.exit == .code(78), "\(refused)")
      #expect(refused.errors.first?.hasPrefix("error: \(backup): data key 1 ") == true)
      #expect(refused.errors.last?.hasSuffix("nothing was changed") == true)
      let without = try await place.mfa("store", "restore", backup, "--database", place.database)
      #expect(without.exit == .code(78) && without.errors.first?.contains("keys_file") == true, "\(without)")
      try place.write(keys, toPrivate: "keys.json")
      #expect(try await place.users().count == 2)
      #expect(try await place.operate("store", "restore", backup).exit == .code(0))
      #expect(try await place.users() == ["ada devices=1"])
    }
  }

  @Test("a symbolic link to the database of a running backend does not lead around its lock")
  func symbolicLink() async throws {
    try await withBackup { place, backup in
      let link = place.folder + "/link.db"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "mfa.db")
      try await place.serving { _ in
        let refused = try await place.mfa(
          "store", "restore", backup, "--database", "sqlite://" + link, "--keys", "keys.json")
        #expect(refused.exit == .code(69), "\(refused)")
        #expect(refused.errors.first == "error: sqlite://\(link): in use by a backend or another command")
      }
      let restored = try await place.mfa(
        "store", "restore", backup, "--database", "sqlite://" + link, "--keys", "keys.json")
      #expect(restored.exit == .code(0), "\(restored)")
    }
  }

  @Test("a backup with an overwritten page, or one that is cut off, is damaged, and nothing changes")
  func damagedFile() async throws {
    try await withBackup { place, backup in
      let bytes = try Data(contentsOf: URL(filePath: backup))
      for table in ["audit", "users", "mfa_backup"] {
        let root = try await BackendInstallation.sql(
          "SELECT rootpage FROM sqlite_master WHERE name = '\(table)'", backup)
        let page = try #require(Int(root.joined().filter(\.isNumber)))
        var changed = bytes
        changed.replaceSubrange((page - 1) * 4096..<page * 4096, with: Data(repeating: 0xFF, count: 4096))
        try changed.write(to: URL(filePath: backup))
        let refused = try await place.operate("store", "restore", backup)
        #expect(refused.exit == .code(65), "\(table): \(refused)")
        #expect(refused.errors.first?.hasPrefix("error: \(backup): damaged: ") == true, "\(table): \(refused)")
        try bytes.write(to: URL(filePath: backup))
      }
      for count in [bytes.count - 4096, bytes.count / 2, 3000] {
        try bytes.prefix(count).write(to: URL(filePath: backup))
        let refused = try await place.operate("store", "restore", backup)
        #expect(refused.exit == .code(65), "\(count): \(refused)")
        #expect(refused.errors.first?.hasPrefix("error: \(backup): damaged: ") == true, "\(count): \(refused)")
      }
      #expect(try await place.users() == ["ada devices=1"])
    }
  }

  @Test("a backup that does not fit on its disk is an error of the file, which is not created")
  func fullDisk() async throws {
    try await BackendInstallation.make { place in
      #expect(try await place.operate("store", "migrate").exit == .code(0))
      _ = try await BackendInstallation.sql(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
        INSERT INTO brakes (subject, failures_in_a_row, window_start, failures_in_window, last_use)
        SELECT 'subject of a limit ' || i, 0, 0, 0, 0 FROM n
        """, place.folder + "/mfa.db")
      let backup = place.folder + "/monday.db"
      // A limit of the file size stands for the end of the disk: 200 and 2000 blocks of 512 bytes.
      for blocks in [200, 2000] {
        let run = try await ChildProcess.run(
          "/bin/sh",
          [
            "-c", "trap '' XFSZ; ulimit -f \(blocks); exec \"$0\" \"$@\"", Places.product("mfa-backend"), "store",
            "backup",
            backup, "-c", place.file,
          ])
        #expect(run.exit == .code(73), "\(run)")
        #expect(run.errors.first?.hasPrefix("error: \(backup): cannot be created: ") == true, "\(run)")
        let files = try FileManager.default.contentsOfDirectory(atPath: place.folder)
        #expect(files.allSatisfy { !$0.hasPrefix("monday") }, "\(files)")
      }
      #expect(try await place.operate("store", "backup", backup).exit == .code(0))
    }
  }

  @Test("a path that cannot be followed is not a database that does not exist yet")
  func unreachablePath() async throws {
    try await BackendInstallation.make { place in
      let url = "sqlite://\(place.folder)/keys.json/mfa.db"
      for command in ["check", "migrate"] {
        let run = try await place.mfa("store", command, "--database", url)
        #expect(run.exit == .code(69) && run.errors.first?.contains("Not a directory") == true, "\(run)")
      }
      try place.configure(database: url)
      let wrong = try await place.operate("check")
      #expect(wrong.exit == .code(1) && wrong.errors.joined().contains("Not a directory"), "\(wrong)")
      try place.configure(database: "sqlite://\(place.folder)/nowhere/mfa.db")
      let missing = try await place.operate("check")
      #expect(missing.exit == .code(1), "\(missing)")
      #expect(
        missing.errors.joined().contains("cannot be created: \(place.folder)/nowhere: No such file"), "\(missing)")
      try place.configure()
      #expect(try await place.operate("check").exit == .code(0))
    }
  }
}
