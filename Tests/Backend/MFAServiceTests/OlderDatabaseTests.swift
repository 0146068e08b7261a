import Foundation
import GRDB
import MFADomain
import MFAFixtures
@testable import MFAStore
import PostgresServers
import TestSupport
import Testing

/// A database with the tables of an older version.
private struct OlderDatabase {
  private let kind: TestDatabase
  /// The path or the URL of the database.
  private let place: String

  /// Creates a database with the tables of `version` and the rows that `fill` inserts.
  init(
    _ kind: TestDatabase, version: Int, in folder: String, _ fill: @escaping @Sendable (any SQLSession) throws -> Void
  ) async throws {
    self.kind = kind
    switch kind {
    case .sqlite:
      place = folder + "/mfa.db"
      var migrator = DatabaseMigrator()
      for (index, step) in MFASchema.sqlite.versions.prefix(version).enumerated() {
        migrator.registerMigration("\(index + 1)") { try step.take(in: SQLiteSession(db: $0)) }
      }
      let queue = try DatabaseQueue(path: place)
      try migrator.migrate(queue)
      try await queue.write { try fill(SQLiteSession(db: $0)) }
      try queue.close()
    case .postgres:
      place = try await PostgresServer.shared().newURL()
      try PostgresDatabase(url: place, trace: nil).transaction { sql in
        try sql.run("CREATE TABLE schema_version (version BIGINT NOT NULL)", [])
        for (index, step) in MFASchema.postgres.versions.prefix(version).enumerated() {
          try step.take(in: sql)
          try sql.run("INSERT INTO schema_version (version) VALUES (?)", [.integer(index + 1)])
        }
        try fill(sql)
      }
    }
  }

  /// Opens the database with the current version.
  func open() throws -> any Store {
    switch kind {
    case .sqlite: try SQLiteMFAStore(path: place, makesTables: false)
    case .postgres: try PostgresMFAStore(url: place, makesTables: false)
    }
  }
}

@Suite("Databases of older versions", .serialized)
struct OlderDatabaseTests {
  @Test(
    "A-235 accounts of an older database are found by the current key of their name",
    arguments: TestDatabase.allCases)
  func renewedNames(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      // The keys of version 2 are in lower case, and not composed after that.
      let accounts = [
        ("Stra\u{DF}e", "stra\u{DF}e"), ("J\u{30C}", "j\u{30C}"), ("\u{1F0}", "\u{1F0}"), ("ada", "ada"),
      ]
      let old = try await OlderDatabase(database, version: 2, in: folder) { sql in
        for (name, key) in accounts {
          try sql.run(
            "INSERT INTO users (id, name_key, username, created_at, locked_at, admin) VALUES (?, ?, ?, ?, ?, ?)",
            [.uuid(UUID()), .text(key), .text(name), .integer(1 as Int64), .null, .integer(0 as Int64)])
        }
      }
      for _ in 1...2 {
        let renewed = try old.open()
        let found = try await renewed.read { records in
          try ["STRASSE", "\u{1F0}", "ADA"].map { try records.user(named: Username($0).key)?.username.text }
        }
        // The account that had the key keeps it. The other account of that name remains visible to an operator.
        #expect(found == ["Stra\u{DF}e", "\u{1F0}", "ada"])
        let users = try await renewed.read { try $0.users(after: "", atMost: 10) }
        #expect(
          users.count == 4 && users.map(\.user.username.text).contains { Array($0.utf8) == Array("J\u{30C}".utf8) })
        // In pages of one, each account appears once, including the account whose key differs from that of its name.
        var paged: [UUID] = []
        var last = ""
        while let next = try await renewed.read({ [last] in try $0.users(after: last, atMost: 1).first }),
          paged.count < 9
        {
          paged.append(next.user.id)
          last = next.key
        }
        #expect(paged == users.map(\.user.id))
      }
    }
  }

  @Test(
    "an account whose current key belongs to another account keeps its old key, and is found by it",
    arguments: TestDatabase.allCases)
  func collidingNames(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      let old = try await OlderDatabase(database, version: 6, in: folder) { sql in
        for (name, key) in [("admin", "admin"), ("\u{FF21}dmin", "\u{FF41}dmin"), ("\u{FF22}ob", "\u{FF42}ob")] {
          try sql.run(
            "INSERT INTO users (id, name_key, username, created_at, locked_at, admin) VALUES (?, ?, ?, ?, ?, ?)",
            [.uuid(UUID()), .text(key), .text(name), .integer(1 as Int64), .null, .integer(0 as Int64)])
        }
        try sql.run(
          """
          INSERT INTO brakes (subject, account, failures_in_a_row, window_start, failures_in_window, last_use)
          VALUES ('mfa:x', ?, 100, 1, 1, 1)
          """, [.text("\u{FF42}ob")])
      }
      let store = try old.open()
      let found = try await store.read { records in
        try ["Admin", "\u{FF21}dmin", "bob", "\u{FF22}ob"].map { try records.user(named: Username($0))?.username.text }
      }
      #expect(found == ["admin", "\u{FF21}dmin", "\u{FF22}ob", "\u{FF22}ob"])
      // An unlock by an operator finds the attempt limit by the current key of the account.
      try await store.write { try $0.removeAttemptLimiters(onAccount: "bob") }
      #expect(try await store.read { try $0.limiter(on: "mfa:x") } == nil)
    }
  }

  @Test(
    "names that an older version accepted are read, and their account signs in", arguments: TestDatabase.allCases)
  func keptNames(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone(username: "zoe\u{FE0F}\u{2028}x")
      let user = MFADomain.User(id: UUID(), username: try Username(phone.username), createdAt: backend.clock.now)
      #expect(throws: InvalidValue.self) { try user.username.checkAsNew() }
      let device = Device(
        id: try DeviceID(phone.deviceID), userID: user.id, model: DeviceModel(kept: "a\u{2028}b\u{34F}"),
        method: .secureEnclave, authMethod: nil, publicKey: try DevicePublicKey(base64: phone.publicKey),
        phoneNumber: nil, binding: .attestedKey(phone.app.keyHash), enrolledAt: backend.clock.now)
      try await backend.context.store.write { records in
        try records.insert(user)
        try records.save(device)
      }
      let token = try #require(try await backend.signIn(phone)["token"]?.text)
      let path = "/devices/zoe%EF%B8%8F%E2%80%A8x"
      let list = try await backend.get(path, as: phone.app, token: token)
      #expect(list["devices"]?[0]?["deviceModel"] == "a\u{2028}b\u{34F}", "\(list)")
      // Its user gives it another name by the rules of today.
      let again = try await backend.post("/mfa/enroll", phone.enrolment(), as: phone.app, token: token)
      #expect(again.status == 200, "\(again)")
    }
  }

  @Test(
    "an account that kept its old key has limits that an operator lifts, and a history of its own",
    arguments: TestDatabase.allCases)
  func keptKey(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone(username: "\u{FF21}dmin")
      let (name, other) = (try Username(phone.username), try Username("admin"))
      #expect(name == other && name.formerKey != other.key)
      let users = [Username(kept: name.text, key: name.formerKey), other].map {
        MFADomain.User(id: UUID(), username: $0, createdAt: backend.clock.now)
      }
      let device = Device(
        id: try DeviceID(phone.deviceID), userID: users[0].id, model: try DeviceModel("phone"),
        method: .secureEnclave, authMethod: nil, publicKey: try DevicePublicKey(base64: phone.publicKey),
        phoneNumber: nil, binding: .attestedKey(phone.app.keyHash), enrolledAt: backend.clock.now)
      try await backend.context.store.write { records in
        for user in users { try records.insert(user) }
        try records.save(device)
      }
      #expect(try await backend.signIn(phone).status == 200)
      let guesses: [(path: String, body: JSONValue)] = [
        ("/auth/verify-otp", ["username": .string(phone.username), "otp": "000000"]),
        ("/mfa/recovery/stop", ["username": .string(phone.username), "code": "WRONGONE"]),
      ]
      let administration = Administration(backend.context)
      for (path, body) in guesses {
        for _ in 1...5 { #expect(try await backend.post(path, body, as: phone.app).status == 401) }
        #expect(try await backend.post(path, body, as: phone.app).status == 429)
        try await administration.unlock(name, by: .command(name: "test"))
        #expect(try await backend.post(path, body, as: phone.app).status == 401)
      }
      let entries = try await administration.history(of: name, before: nil, atMost: 100, by: .command(name: "test"))
      let events = Set(entries.map(\.event))
      #expect(events == ["signature.accepted", "code.refused", "code.braked", "recovery.refused", "user.unlocked"])
      let others = try await administration.history(of: other, before: nil, atMost: 100, by: .command(name: "test"))
      #expect(others.isEmpty)
    }
  }

  @Test("an import gives tokens to the account of each name, also if another one shares its current key")
  func importForKeptKey() async throws {
    try await TestBackend.with { backend in
      let (name, other) = (try Username("\u{FF21}dmin"), try Username("admin"))
      let users = [Username(kept: name.text, key: name.formerKey), other].map {
        MFADomain.User(id: UUID(), username: $0, createdAt: backend.clock.now)
      }
      try await backend.context.store.write { records in for user in users { try records.insert(user) } }
      let secret = Array("12345678901234567890".utf8)
      let tokens = try [("A", name), ("B", other)].map { serial, username in
        try ImportedToken(place: "line 1", serial: serial, kind: .hotp, secret: secret, username: username)
      }
      let administration = Administration(backend.context)
      _ = try await administration.importTokens(tokens, from: "csv", changes: true, by: .command(name: "test"))
      let listed = try await administration.tokens(after: nil, atMost: 9, by: .command(name: "test"))
      #expect(listed.map(\.owner?.text) == [name.text, other.text])
    }
  }

  @Test("every column that selects rows for removal has an index")
  func indices() async throws {
    try await Places.withTemporaryFolder { folder in
      _ = try SQLiteMFAStore(path: folder + "/mfa.db")
      let queue = try DatabaseQueue(path: folder + "/mfa.db")
      for (table, column) in [
        ("challenges", "expires_at"), ("codes", "created_at"), ("pushes", "created_at"),
        ("key_challenges", "expires_at"), ("federation_challenges", "expires_at"), ("sessions", "expires_at"),
        ("trusted_devices", "expires_at"),
        ("brakes", "last_use"), ("gate_identities", "expires_at"), ("notices", "at"), ("networks", "last_seen_at"),
        ("recoveries", "expires_at"), ("refusal_tallies", "since"),
      ] {
        let first = try await queue.read { db in try db.indexes(on: table).compactMap(\.columns.first) }
        #expect(first.contains(column), "\(table).\(column)")
      }
    }
  }

  @Test("A-235 a database of every older version opens, with all tables", arguments: TestDatabase.allCases)
  func everyVersion(_ database: TestDatabase) async throws {
    for version in 1..<MFASchema.sqlite.versions.count {
      try await Places.withTemporaryFolder { folder in
        let old = try await OlderDatabase(database, version: version, in: folder) { _ in }
        let store = try old.open()
        #expect(try await store.read { try $0.unendedRecovery(of: UUID()) } == nil, "from version \(version)")
        #expect(try await store.read { try $0.securityKeys(of: UUID()) } == [], "from version \(version)")
        #expect(try await store.read { try $0.federatedIdentities(of: UUID()) } == [], "from version \(version)")
      }
    }
  }
}
