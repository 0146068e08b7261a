import Foundation
import PostgresServers
import TestSupport
import Testing

@Suite("Commands without a database", .serialized, .timeLimit(.minutes(5)))
struct MissingDatabaseTests {
  private func mfa(_ arguments: [String]) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String])
  {
    try await ChildProcess.run(Places.product("mfa-backend"), arguments)
  }

  /// Calls `body` with a folder that contains only a file of keys.
  private func withKeys(_ body: (_ folder: String) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let keys = try await mfa(["keys", "make"]).output.joined()
      #expect(
        FileManager.default.createFile(
          atPath: folder + "/keys.json", contents: Data(keys.utf8), attributes: [.posixPermissions: 0o600]))
      try await body(folder)
    }
  }

  @Test(
    "only run creates a database",
    arguments: [
      ["audit", "verify"], ["audit", "export"], ["admin", "users"], ["admin", "lock", "ada"], ["keys", "rotate"],
      ["keys", "reseal"],
    ])
  func noDatabase(_ command: [String]) async throws {
    try await withKeys { folder in
      let run = try await mfa(
        command + ["--database", "sqlite://\(folder)/mfa.db", "--keys", folder + "/keys.json"])
      #expect(run.exit == .code(66))
      #expect(
        run.errors.first == "error: no database at \(folder)/mfa.db: No such file or directory",
        "\(run.errors)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["keys.json"])
    }
  }

  @Test(
    "only run creates tables in an empty database",
    arguments: [["audit", "verify"], ["admin", "users"], ["keys", "rotate"]], ["sqlite", "postgres"])
  func emptyDatabase(_ command: [String], _ kind: String) async throws {
    try await withKeys { folder in
      var url = "sqlite://\(folder)/mfa.db"
      if kind == "sqlite" {
        try Data().write(to: URL(filePath: folder + "/mfa.db"))
      } else {
        url = try await PostgresServer.shared().newURL()
      }
      // The second run gives the same error, so the first one created no tables.
      for _ in 1...2 {
        let run = try await mfa(command + ["--database", url, "--keys", folder + "/keys.json"])
        #expect(run.exit == .code(66))
        #expect(
          run.errors == [
            "error: the database has no tables of mfa-backend", "hint: mfa-backend run creates it at its first start",
          ])
      }
    }
  }
}
