import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import MFAStore
import TestSupport
import Testing

@Suite("Recovery commands", .serialized, .timeLimit(.minutes(5)))
struct RecoveryCommandTests {
  private func admin(_ arguments: [String], in folder: String) async throws -> (
    exit: ChildProcess.Exit, output: [String], errors: [String]
  ) {
    try await ChildProcess.run(
      Places.product("mfa-backend"),
      ["admin"] + arguments + ["--database", "sqlite://\(folder)/mfa.db", "--keys", folder + "/keys.json"])
  }

  @Test("A-229 an operator lists and stops recoveries with commands")
  func operate() async throws {
    try await Places.withTemporaryFolder { folder in
      let keys = try await ChildProcess.run(Places.product("mfa-backend"), ["keys", "make"])
      #expect(
        FileManager.default.createFile(
          atPath: folder + "/keys.json", contents: Data(keys.output.joined().utf8),
          attributes: [.posixPermissions: 0o600]))
      let store = try SQLiteMFAStore(path: folder + "/mfa.db")
      let now = Timestamp(seconds: Timestamp.now().seconds)
      try await store.write { records in
        for name in ["bob", "Ada"] {
          let user = User(id: UUID(), username: try Username(name), createdAt: now)
          try records.insert(user)
          guard name == "Ada" else { continue }
          try records.insert(
            Recovery(
              id: UUID(), userID: user.id, binding: .attestedKey("k"), address: "192.0.2.7",
              codeHash: Array(repeating: 1, count: 32), startedAt: now,
              readyAt: now.advanced(by: .seconds(86400)), expiresAt: now.advanced(by: .seconds(8 * 86400))))
        }
      }
      let list = try await admin(["recoveries"], in: folder)
      let ready = now.advanced(by: .seconds(86400))
      #expect(list.exit == .code(0) && list.output.count == 1, "\(list.errors)")
      #expect(list.output.first?.hasPrefix("Ada started=\(now) ready=\(ready) ") == true, "\(list.output)")
      #expect(list.output.first?.hasSuffix(" from=192.0.2.7") == true)
      let json = try await admin(["recoveries", "--json"], in: folder).output
      #expect(json.count == 1 && json[0].hasPrefix(#"{"address":"192.0.2.7","expiresAt":""#), "\(json)")
      #expect(json[0].hasSuffix(#""readyAt":"\#(ready)","startedAt":"\#(now)","username":"Ada"}"#), "\(json)")
      #expect(try await admin(["cancel-recovery", "ada"], in: folder).exit == .code(0))
      #expect(try await admin(["recoveries"], in: folder).output.isEmpty)
      let again = try await admin(["cancel-recovery", "ada"], in: folder)
      #expect(again.exit == .code(66) && again.errors.first == "error: no recovery of ada is open", "\(again)")
      let history = try await admin(["history", "ada"], in: folder)
      #expect(history.output.first?.contains(" recovery.cancelled ") == true, "\(history.output)")
    }
  }
}
