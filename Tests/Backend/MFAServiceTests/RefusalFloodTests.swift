import MFADomain
import MFAFixtures
import Testing

@Suite("Refusal floods in the history")
struct RefusalFloodTests {
  private struct Flood: Sendable {
    let backend: TestBackend
    let ada = TestPhone(username: "ada")

    init(_ backend: TestBackend) async throws {
      self.backend = backend
      try await backend.enrol(ada)
    }

    /// Tries to enrol under a name that exists, each time as another device.
    func enrol(_ times: Int, as app: AppInstance, under name: String = "ada") async throws {
      for _ in 0..<times { try await backend.enrol(TestPhone(username: name, app: app)) }
    }

    func entries(_ event: String, of account: String? = "ada") async throws -> [AuditEntry] {
      try await backend.context.store.read { records in
        try records.auditEntries(after: 0, atMost: 10_000).map(\.entry)
          .filter { $0.event == event && (account == nil || $0.account == account) }
      }
    }

    func isWhole() async throws -> Bool { try await backend.trail.verify().fault == nil }
  }

  private func withFlood(_ database: TestDatabase, _ body: (Flood) async throws -> Void) async throws {
    try await TestBackend.with(store: try await database.open()) { try await body(Flood($0)) }
  }

  @Test(
    "A-227 in 15 minutes the history records ten refusals of one kind and the number of further ones",
    arguments: TestDatabase.allCases)
  func bounded(_ database: TestDatabase) async throws {
    try await withFlood(database) { flood in
      let eve = AppInstance.genuine()
      try await flood.enrol(60, as: eve)
      #expect(try await flood.entries("enrolment.refused").count == 10)
      let maintenance = RecordMaintenance(flood.backend.context)
      flood.backend.clock.advance(by: .seconds(899))
      try await maintenance.clean()
      #expect(try await flood.entries("refusals.repeated").isEmpty)
      flood.backend.clock.advance(by: .seconds(1))
      for _ in 1...2 { try await maintenance.clean() }
      let repeated = try await flood.entries("refusals.repeated")
      #expect(repeated.count == 1 && repeated.first?.actor == eve.keyHash)
      #expect(
        repeated.first?.detail == "event=enrolment.refused reason=no_session count=50 since=2026-01-01T00:00:00Z")
      try await flood.enrol(1, as: eve)
      #expect(try await flood.entries("enrolment.refused").count == 11)
      #expect(try await flood.isWhole())
    }
  }

  @Test("A-227 without maintenance the next refusal records the count of the previous window")
  func closed() async throws {
    try await withFlood(.sqlite) { flood in
      let eve = AppInstance.genuine()
      try await flood.enrol(25, as: eve)
      flood.backend.clock.advance(by: .seconds(900))
      try await flood.enrol(1, as: eve)
      let repeated = try await flood.entries("refusals.repeated")
      #expect(repeated.count == 1 && repeated.first?.detail.contains("count=15 ") == true)
      #expect(try await flood.entries("enrolment.refused").count == 11)
      #expect(try await flood.isWhole())
    }
  }

  @Test("A-227 after a clock that ran a day ahead was set back, the window of that day is closed")
  func clockSetBack() async throws {
    try await withFlood(.sqlite) { flood in
      flood.backend.clock.advance(by: .seconds(86400))
      try await flood.enrol(25, as: .genuine())
      flood.backend.clock.advance(by: .seconds(-86400))
      try await RecordMaintenance(flood.backend.context).removeFuture()
      let repeated = try await flood.entries("refusals.repeated")
      #expect(repeated.count == 1 && repeated.first?.detail.contains("count=15 ") == true)
      #expect(try await flood.isWhole())
    }
  }

  @Test("A-227 refusals of another app instance, account or kind are recorded in full during a flood")
  func others() async throws {
    try await withFlood(.sqlite) { flood in
      let backend = flood.backend
      try await backend.enrol(TestPhone(username: "bob"))
      let eve = AppInstance.genuine()
      try await flood.enrol(30, as: eve)
      let mallory = AppInstance.genuine()
      try await flood.enrol(1, as: mallory)
      #expect(try await flood.entries("enrolment.refused").last?.actor == mallory.keyHash)
      try await flood.enrol(1, as: eve, under: "bob")
      #expect(try await flood.entries("enrolment.refused", of: "bob").count == 1)
      _ = try await backend.post("/auth/verify-otp", ["username": "ada", "otp": "000000"], as: eve)
      #expect(try await flood.entries("code.refused").count == 1)
      // An entry that is not a refusal is always recorded in full.
      for _ in 1...15 { _ = try await backend.signIn(flood.ada) }
      #expect(try await flood.entries("signature.accepted").count == 15)
    }
  }

  @Test("A-227 refusals for unknown names are counted together, so invented names add no entries")
  func unknownNames() async throws {
    try await withFlood(.sqlite) { flood in
      let eve = AppInstance.genuine()
      for number in 1...40 {
        _ = try await flood.backend.post(
          "/auth/verify-otp", ["username": .string("nobody-\(number)"), "otp": "000000"], as: eve)
      }
      #expect(try await flood.entries("code.refused", of: nil).count == 10)
      flood.backend.clock.advance(by: .seconds(900))
      try await RecordMaintenance(flood.backend.context).clean()
      let repeated = try await flood.entries("refusals.repeated", of: nil)
      #expect(repeated.count == 1 && repeated.first?.account == nil)
      #expect(repeated.first?.detail.contains("count=30 ") == true)
    }
  }

  @Test("A-227 of 60 simultaneous refusals ten are recorded and 50 counted", arguments: TestDatabase.allCases)
  func simultaneous(_ database: TestDatabase) async throws {
    try await withFlood(database) { flood in
      let eve = AppInstance.genuine()
      try await withThrowingTaskGroup { group in
        for _ in 1...60 { group.addTask { try await flood.enrol(1, as: eve) } }
        try await group.waitForAll()
      }
      #expect(try await flood.entries("enrolment.refused").count == 10)
      flood.backend.clock.advance(by: .seconds(900))
      try await RecordMaintenance(flood.backend.context).clean()
      #expect(try await flood.entries("refusals.repeated").first?.detail.contains("count=50 ") == true)
      #expect(try await flood.isWhole())
    }
  }
}
