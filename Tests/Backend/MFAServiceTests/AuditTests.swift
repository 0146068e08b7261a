import ByteCoding
import Foundation
import GRDB
import MFADomain
import MFAFixtures
import MFAStore
import Testing
import TestSupport

@Suite("History")
struct AuditTests {
  /// Calls `body` with the path of a database whose history has some entries.
  private func withHistory(_ body: (String, AuditTrail) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/mfa.db"
      let store = try SQLiteMFAStore(path: path)
      try await TestBackend.with(store: store) { backend in
        let phone = TestPhone()
        _ = try await backend.setUp(phone)
        _ = try await backend.signIn(phone)
        try await body(path, backend.trail)
      }
    }
  }

  @Test("X-050 an unchanged history is verified")
  func whole() async throws {
    try await withHistory { _, trail in
      let verdict = try await trail.verify()
      #expect(verdict.fault == nil)
      #expect(verdict.entries >= 5)
      #expect(try await trail.verify(known: [(verdict.entries, verdict.lastHash)]).fault == nil)
    }
  }

  @Test(
    "X-050 a changed, removed or moved entry is detected",
    arguments: [
      ("UPDATE audit SET detail = 'device=other' WHERE sequence = 2", AuditTrail.Violation.changed(sequence: 2)),
      ("UPDATE audit SET at = at + 1 WHERE sequence = 3", .changed(sequence: 3)),
      ("UPDATE audit SET account = NULL WHERE sequence = 3", .changed(sequence: 3)),
      ("DELETE FROM audit WHERE sequence = 2", .broken(sequence: 3)),
      (
        "UPDATE audit SET sequence = -1 WHERE sequence = 2; UPDATE audit SET sequence = 2 WHERE sequence = 3; "
          + "UPDATE audit SET sequence = 3 WHERE sequence = -1", .changed(sequence: 2)
      ),
    ])
  func tampered(_ sql: String, _ fault: AuditTrail.Violation) async throws {
    try await withHistory { path, trail in
      try await DatabaseQueue(path: path).write { try $0.execute(sql: sql) }
      #expect(try await trail.verify().fault == fault)
    }
  }

  @Test("X-050 a truncated end is detected with an earlier verification result")
  func cutOff() async throws {
    try await withHistory { path, trail in
      let known = try await trail.verify()
      try await DatabaseQueue(path: path).write { db in
        try db.execute(sql: "DELETE FROM audit WHERE sequence = ?", arguments: [known.entries])
      }
      #expect(try await trail.verify().fault == nil)
      #expect(
        try await trail.verify(known: [(known.entries, known.lastHash)]).fault
          == .cutOff(at: known.entries - 1, expected: known.entries))
    }
  }

  @Test("X-054 the file contains no number, secret or code in plain text")
  func nothingInTheClear() async throws {
    try await Places.withTemporaryFolder { folder in
      let path = folder + "/mfa.db"
      let store = try SQLiteMFAStore(path: path)
      try await TestBackend.with(store: store) { backend in
        let phone = TestPhone()
        let (token, authenticator) = try await backend.setUp(phone)
        _ = try await backend.post(
          "/auth/mfa/email", ["email": "somebody@example.com"], as: phone.app, token: token)
        let mailed = backend.outbox.lastCode ?? ""
        _ = try await backend.post(
          "/auth/mfa/email/verify", ["email": "somebody@example.com", "code": .string(mailed)], as: phone.app,
          token: token)
        let secrets =
          [Array("somebody@example.com".utf8), Array(phone.number.utf8), authenticator.secret]
          + authenticator.backupCodes.map { Array($0.utf8) }
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        for file in files {
          let bytes = try Data(contentsOf: URL(filePath: folder + "/" + file))
          for secret in secrets { #expect(bytes.range(of: Data(secret)) == nil) }
        }
        #expect(files.contains("mfa.db"))
      }
    }
  }
}
