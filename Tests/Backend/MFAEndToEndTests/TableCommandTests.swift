import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import MFAStore
import TestSupport
import Testing

@Suite("Database browser commands", .serialized, .timeLimit(.minutes(5)))
struct TableCommandTests {
  @Test("T-40 A-124 tables and rows are printed only with the option for development")
  func tables() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore(path: folder + "/mfa.db")
      try await store.write { records in
        try records.insert(
          User(id: UUID(), username: try Username("Ada \"A\""), createdAt: Timestamp(seconds: 1_767_225_600)))
      }
      func admin(_ arguments: [String]) async throws -> (
        exit: ChildProcess.Exit, output: [String], errors: [String]
      ) {
        try await ChildProcess.run(
          Places.product("mfa-backend"), ["admin"] + arguments + ["--database", "sqlite://\(folder)/mfa.db"])
      }
      let tables = try await admin(["tables", "--development"])
      #expect(tables.exit == .code(0) && tables.output.contains("users 1"), "\(tables.errors)")
      let rows = try await admin(["rows", "users", "--development"])
      #expect(rows.output.count == 1)
      #expect(try JSONValue(Data((rows.output.first ?? "").utf8))["username"] == "Ada \"A\"")
      #expect(try await admin(["rows", "users", "--skip", "1", "--development"]).output.isEmpty)
      for command in [["tables"], ["rows", "users"]] {
        let refused = try await admin(command)
        #expect(refused.exit == .code(64) && refused.output.isEmpty)
        #expect(refused.errors.contains { $0.contains("--development") })
      }
      let unknown = try await admin(["rows", "nothing", "--development"])
      #expect(unknown.exit == .code(66) && unknown.errors.first == "error: no table named nothing")
    }
  }
}
