import Foundation
import MFADomain
import MFAFixtures
@testable import MFAStore
import Testing

@Suite("Database browser")
struct DatabaseBrowserTests {
  @Test("A-124 tables and rows are shown without secrets", arguments: TestDatabase.allCases)
  func shown(_ database: TestDatabase) async throws {
    let store = try await database.open()
    try await TestBackend.with(store: store) { backend in
      let phone = TestPhone(username: "ada")
      let (token, authenticator) = try await backend.setUp(phone)
      _ = try await backend.post("/auth/push/start", [:], as: phone.app, token: token)
      _ = try await backend.post(
        "/mfa/recovery", ["username": "ada", "code": .string(authenticator.backupCodes[0])], as: phone.app)
      let browser = DatabaseBrowser(store)
      let tables = try await browser.tables()
      #expect(tables.contains { $0 == ("users", 1) } && tables.contains { $0 == ("backup_codes", 10) })
      var text = ""
      for (name, count) in tables {
        let rows = try await browser.rows(of: name, skipping: 0, atMost: 1000)
        #expect(rows.count == count)
        // Each row is a JSON object without columns of bytes.
        for row in rows { #expect(try JSONValue(Data(row.utf8)).keys.isEmpty == false) }
        #expect(!rows.contains { $0.contains(" bytes\"") })
        text += rows.joined(separator: "\n")
      }
      #expect(text.contains(#""username":"ada""#) && text.contains("device.enrolled"))
      for secret in [phone.number, phone.publicKey, token, backend.outbox.lastCode ?? "?"] {
        #expect(!text.contains(secret))
      }
      for name in ["hash", "secret\"", "nonce", "wrapped\"", "phone_number", "public_key"] {
        #expect(!text.contains(name), "\(name)")
      }
      #expect(try await browser.rows(of: "pushes", skipping: 0, atMost: 10).allSatisfy { !$0.contains("number") })
    }
  }

  @Test("A-124 every table of the backend is shown", arguments: TestDatabase.allCases)
  func complete(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let schema: MFASchema = database == .sqlite ? .sqlite : .postgres
    let made = schema.versions.flatMap(\.statements).compactMap { statement -> String? in
      let words = statement.split(separator: " ")
      return words.starts(with: ["CREATE", "TABLE"]) ? String(words[2]) : nil
    }
    #expect(made.count >= 20)
    #expect(try await Set(DatabaseBrowser(store).tables().map(\.name)) == Set(made))
  }

  @Test("A-176 a table is shown page by page, and an unknown table is refused", arguments: TestDatabase.allCases)
  func pages(_ database: TestDatabase) async throws {
    let store = try await database.open()
    try await store.write { records in
      for number in 10..<35 {
        try records.insert(
          User(id: UUID(), username: try Username("user\(number)"), createdAt: ManualClock().now))
      }
    }
    let browser = DatabaseBrowser(store)
    let all = try await browser.rows(of: "users", skipping: 0, atMost: 100)
    let first = try await browser.rows(of: "users", skipping: 0, atMost: 20)
    let second = try await browser.rows(of: "users", skipping: 20, atMost: 20)
    #expect(all.count == 25 && first + second == all)
    for name in ["nothing", "users; DROP TABLE users", "sqlite_master", "pg_catalog.pg_authid"] {
      await #expect(throws: DatabaseBrowser.UnknownTable(name: name)) {
        try await browser.rows(of: name, skipping: 0, atMost: 1)
      }
    }
  }
}
