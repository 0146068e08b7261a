import ByteCoding
import Foundation
import Locking
import MFADomain
import MFAFixtures
import MFAStore
import PostgresServers
import Testing

@Suite("The number of sessions")
struct SessionCountTests {
  @Test(
    "a device has ten live sessions, and each further sign-in ends the oldest", arguments: TestDatabase.allCases)
  func mostOfDevice(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: database.open()) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      var tokens: [String] = []
      for _ in 1...12 {
        tokens.append(try await backend.signIn(phone)["token"]?.text ?? "")
        backend.clock.advance(by: .seconds(1))
      }
      for (index, token) in tokens.enumerated() {
        let status = try await backend.get("/devices/testuser", as: phone.app, token: token).status
        #expect(status == (index < 2 ? 401 : 200), "session \(index + 1)")
      }
      let entries = try await Administration(backend.context).history(
        of: Username("testuser"), before: nil, atMost: 100, by: .command(name: "test"))
      #expect(
        entries.filter { $0.event == "session.revoked" }.map(\.detail)
          == Array(repeating: "count=1 reason=too_many", count: 2))
    }
  }

  @Test("the sessions of one device do not count against another device")
  func otherDevice() async throws {
    try await TestBackend.with { backend in
      let (first, second) = (TestPhone(), TestPhone())
      let token = try await backend.token(first)
      _ = try await backend.link(second, to: first, token: token)
      for _ in 1...11 { _ = try await backend.signIn(second) }
      #expect(try await backend.get("/devices/testuser", as: first.app, token: token).status == 200)
    }
  }

  @Test("ending many sessions takes as many statements as ending one, and causes one notice")
  func statements() async throws {
    var counts: [Int] = []
    for sessions in [1, 300] {
      let count = LockedValue(0)
      let store = try SQLiteMFAStore.ephemeral(trace: StatementTrace { _, _ in count.withLock { $0 += 1 } })
      try await TestBackend.with(store: store) { backend in
        let phone = TestPhone()
        let token = try await backend.token(phone)
        // Sessions from a backend without the limit.
        try await store.write { records in
          let user = try #require(try records.user(named: "testuser"))
          let known = try #require(try records.sessions(of: user.id).first)
          for _ in 1..<sessions {
            try records.insert(
              LoginSession(
                id: UUID(), userID: user.id, deviceID: known.deviceID, binding: known.binding, scope: .full,
                methods: [], authenticatedAt: known.createdAt, createdAt: known.createdAt,
                expiresAt: known.expiresAt, rotatedAt: known.createdAt))
          }
        }
        count.withLock { $0 = 0 }
        try await Administration(backend.context).lock(Username("testuser"), by: .command(name: "test"))
        counts.append(count.withLock { $0 })
        #expect(try await backend.get("/devices/testuser", as: phone.app, token: token).status == 401)
        let (live, notices) = try await store.read { [now = backend.clock.now] records in
          let user = try #require(try records.user(named: "testuser"))
          return (
            try records.sessions(of: user.id).filter { $0.isLive(at: now) }.count,
            try records.notices(of: user.id, after: 0, atMost: 1000)
          )
        }
        #expect(live == 0)
        #expect(notices.map(\.kind) == [.deviceEnrolled, .locked, .sessionRevoked])
        #expect(notices.map(\.concerning) == [phone.deviceID, nil, nil])
      }
    }
    #expect(counts[0] == counts[1])
  }
}
