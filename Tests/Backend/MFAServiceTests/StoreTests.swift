import ByteCoding
import Crypto
import Foundation
import Glibc
import MFADomain
import MFAFixtures
import MFAStore
import PostgresServers
import TestSupport
import Testing

@Suite("MFA store", .serialized)
struct StoreTests {
  private struct RolledBack: Error {}

  private static func challenge(at now: Timestamp) throws -> DeviceChallenge {
    DeviceChallenge(
      id: UUID(), username: "ada", deviceID: try DeviceID("d"), nonce: Array(repeating: 7, count: 32),
      binding: .attestedKey("k"), createdAt: now, expiresAt: now.advanced(by: DeviceChallenge.lifetime))
  }

  @Test(
    "a database without tables is refused, and remains empty, unless creation is allowed",
    arguments: TestDatabase.allCases)
  func noTables(_ database: TestDatabase) async throws {
    try await Places.withTemporaryFolder { folder in
      let open: (Bool) throws -> any Store
      switch database {
      case .sqlite: open = { try SQLiteMFAStore(path: folder + "/mfa.db", makesTables: $0) }
      case .postgres:
        let url = try await PostgresServer.shared().newURL()
        open = { try PostgresMFAStore(url: url, makesTables: $0) }
      }
      for _ in 1...2 { #expect(throws: MFAStoreError.noTables) { try open(false) } }
      _ = try open(true)
      #expect(try await open(false).read { try $0.lastAuditEntry() == nil })
    }
  }

  @Test(
    "A-092 of 50 simultaneous uses of a challenge one succeeds; at its expiry none", arguments: TestDatabase.allCases)
  func spent(_ database: TestDatabase) async throws {
    let (store, now) = (try await database.open(), Timestamp(seconds: 1_767_225_600))
    let (first, second) = (try Self.challenge(at: now), try Self.challenge(at: now))
    try await store.write { records in
      try records.insert(first)
      try records.insert(second)
    }
    let count = try await withThrowingTaskGroup { group in
      for _ in 1...50 {
        group.addTask { try await store.write { try $0.spend(challenge: first.id, at: now) } ? 1 : 0 }
      }
      return try await group.reduce(0, +)
    }
    #expect(count == 1)
    #expect(try await store.read { try $0.challenge(first.id)?.isUsed } == true)
    #expect(try await store.write { try $0.spend(challenge: second.id, at: second.expiresAt) } == false)
    let lastInstant = Timestamp(milliseconds: second.expiresAt.milliseconds - 1)
    #expect(try await store.write { try $0.spend(challenge: second.id, at: lastInstant) })
  }

  @Test(
    "A-235 on both databases a write that throws is rolled back, and concurrent writes are committed",
    arguments: TestDatabase.allCases)
  func rollback(_ database: TestDatabase) async throws {
    let (store, now) = (try await database.open(), Timestamp(seconds: 1_767_225_600))
    let users = try (1...40).map { User(id: UUID(), username: try Username("user\($0)"), createdAt: now) }
    await withTaskGroup { group in
      for (index, user) in users.enumerated() {
        group.addTask {
          try? await store.write { records in
            try records.insert(user)
            if index.isMultiple(of: 2) { throw RolledBack() }
          }
        }
      }
    }
    #expect(try await store.read { try $0.users(after: "", atMost: 100).count } == 20)
  }

  @Test(
    "a database that root makes in a folder of the backend's user belongs to that user", .enabled(if: geteuid() == 0))
  func owner() async throws {
    try await Places.withTemporaryFolder { folder in
      let place = folder + "/mfa"
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
      try #require(chown(place, 65_534, 65_534) == 0)
      let store = try SQLiteMFAStore(path: place + "/mfa.db")
      let files = try FileManager.default.contentsOfDirectory(atPath: place)
      #expect(files.contains("mfa.db"), "\(files)")
      for file in files {
        var status = stat()
        let found = lstat("\(place)/\(file)", &status)
        #expect(found == 0 && status.st_uid == 65_534, "\(file)")
      }
      #expect(try await store.read { try $0.users(after: "", atMost: 1).count } == 0)
    }
  }

  @Test("T-19 A-093 a code is stored as a keyed hash of the code and its number, and never in plain text")
  func hashed() async throws {
    try await Places.withTemporaryFolder { folder in
      let store = try SQLiteMFAStore(path: folder + "/mfa.db")
      try await TestBackend.with(store: store) { backend in
        let phone = TestPhone()
        try await backend.enrol(phone, method: "smsOTP")
        _ = try await backend.post(
          "/auth/request-otp", ["username": "testuser", "phoneNumber": "+1234567890"], as: phone.app)
        let code = try #require(backend.outbox.lastCode)
        let kept = try #require(
          try await store.read { try $0.newestCode(for: "sms:\(phone.app.keyHash):testuser", .sms) })
        #expect(kept.hash.count == 32)
        #expect(kept.hash != Array(SHA256.hash(data: Data(code.utf8))))
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
          let bytes = try Data(contentsOf: URL(filePath: folder + "/" + name))
          #expect(bytes.range(of: Data(code.utf8)) == nil, "\(name)")
        }
      }
    }
  }

  @Test(
    "X-054 values that are sealed again open with the new data key, and none remains under the old key",
    arguments: TestDatabase.allCases)
  func resealed(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let keys = try KeyEncryptionKeys([("a", Array(repeating: 1, count: 32))])
    let (now, id) = (Timestamp(seconds: 1_767_225_600), UUID())
    let user = User(id: id, username: try Username("ada"), createdAt: now)
    let place = "user:\(id.uuidString.lowercased()):email"
    let before = try await Vault.open(in: store, with: keys, entropy: .system)
    let sealed = try before.seal("ada@example.com", for: place)
    try await store.write { records in
      try records.insert(user)
      try records.saveEmail(sealed, of: id)
    }
    #expect(try await Resealing(store, keys).run() == 1)
    let kept = try #require(try await store.read { try $0.email(of: id) })
    let after = try await Vault.open(in: store, with: keys, entropy: .system)
    #expect(try after.openText(kept, for: place) == "ada@example.com")
    #expect(after.isCurrent(kept) && !after.isCurrent(sealed))
    #expect(throws: (any Error).self) { try before.open(kept, for: place) }
  }
}
