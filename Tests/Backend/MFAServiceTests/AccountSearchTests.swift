import ByteCoding
import Foundation
import MFADomain
import MFAFixtures
import Testing

@Suite("Searches of operators")
struct AccountSearchTests {
  private let actor = Administration.Actor.command(name: "test")

  private func insert(_ names: [String], in backend: TestBackend, lockedAt: Timestamp? = nil) async throws {
    let now = backend.clock.now
    try await backend.context.store.write { records in
      for name in names {
        try records.insert(User(id: UUID(), username: try Username(name), createdAt: now, lockedAt: lockedAt))
      }
    }
  }

  @Test("The pages of a search have every account that matches once, and no other", arguments: TestDatabase.allCases)
  func pages(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      try await insert((0..<450).map { "user \($0)" }, in: backend)
      try await insert((0..<7).map { "Ünal \($0)" }, in: backend, lockedAt: backend.clock.now)
      let administration = Administration(backend.context)
      for (filter, count) in [
        (AccountFilter(), 457), (AccountFilter(text: "üN"), 7), (AccountFilter(text: "ser 44"), 11),
        (AccountFilter(state: .locked), 7), (AccountFilter(text: "user", state: .locked), 0),
        (AccountFilter(state: .admin), 0), (AccountFilter(text: "\n"), 0),
      ] {
        var (names, after, pages) = ([String](), String?.none, 0)
        repeat {
          let found = try await administration.search(filter, after: after, atMost: 50, by: actor)
          #expect(found.accounts.count <= 50)
          names += found.accounts.map(\.user.username.text)
          (after, pages) = (found.next, pages + 1)
        } while after != nil && pages < 20
        #expect(names.count == count && Set(names).count == count, "\(filter)")
        #expect(
          names == names.sorted { Array($0.lowercased().utf8).lexicographicallyPrecedes(Array($1.lowercased().utf8)) })
      }
      await #expect(throws: InvalidValue.self) {
        try await administration.search(
          AccountFilter(text: String(repeating: "a", count: 513)), after: nil, atMost: 50, by: actor)
      }
    }
  }

  /// Accounts whose stored key the rule of today spells otherwise, one of them with a name that it refuses, and one
  /// whose key another name has by that rule.
  private func insertKept(in backend: TestBackend) async throws -> [User] {
    let now = backend.clock.now
    let users = [(" old ", " old "), ("Zoe", "ZOE"), ("admin", "admin"), ("\u{FF21}dmin", "\u{FF41}dmin")].map {
      User(id: UUID(), username: Username(kept: $0, key: $1), createdAt: now)
    }
    try await backend.context.store.write { records in
      for user in users {
        try records.insert(user)
        try records.insert(
          Recovery(
            id: UUID(), userID: user.id, binding: .debugBuild, address: "192.0.2.1", codeHash: [1, 2, 3],
            startedAt: now, readyAt: now.advanced(by: .seconds(60)), expiresAt: now.advanced(by: .seconds(120))))
      }
    }
    return users
  }

  @Test("Pages go on after an account whose stored key is an older one", arguments: TestDatabase.allCases)
  func keptPages(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let users = try await insertKept(in: backend)
      let administration = Administration(backend.context)
      var (recoveries, accounts, found) = ([UUID](), [UUID](), [User?]())
      var (last, next) = (User?.none, User?.none)
      for _ in 0..<10 {
        let page = try await administration.recoveries(
          after: last.map(Administration.cursor), atMost: 1, by: actor)
        recoveries += page.map(\.user.id)
        last = page.last?.user ?? last
        let further = try await administration.accounts(
          after: next.map(Administration.cursor), atMost: 1, by: actor)
        accounts += further.map(\.user.id)
        next = further.last?.user ?? next
      }
      #expect(recoveries == users.map(\.id) && accounts == users.map(\.id))
      // A client that pages by names does so still.
      let named = try await administration.accounts(after: "ADMIN", atMost: 10, by: actor)
      #expect(named.map(\.user.id) == [users[3].id])
      for text in ["ZOE", " old ", "old"] {
        let listed = try await administration.search(AccountFilter(text: text), after: nil, atMost: 50, by: actor)
        found.append(listed.accounts.count == 1 ? listed.accounts[0].user : nil)
      }
      #expect(found.map { $0?.id } == [users[1].id, users[0].id, users[0].id])
      // The name of one account is the key of another: each is found, once.
      let both = try await administration.search(
        AccountFilter(text: "\u{FF21}dmin"), after: nil, atMost: 50, by: actor)
      #expect(both.accounts.map(\.user.id) == [users[3].id, users[2].id])
      for bad in ["\u{0}", "a\u{0}", "\n"] {
        await #expect(throws: InvalidValue.self) {
          try await administration.recoveries(after: bad, atMost: 1, by: actor)
        }
        if bad.utf8.contains(0) {
          await #expect(throws: InvalidValue.self) {
            try await administration.search(AccountFilter(), after: bad, atMost: 50, by: actor)
          }
        }
        let none = try await administration.search(AccountFilter(text: bad), after: nil, atMost: 50, by: actor)
        #expect(none.accounts.isEmpty)
      }
    }
  }

  @Test("The history of an account is found by its id, also if the rule of today refuses its name")
  func keptHistory() async throws {
    try await TestBackend.with { backend in
      let administration = Administration(backend.context)
      for user in try await insertKept(in: backend) {
        try await administration.lock(administration.name(of: user.id, by: actor), by: actor)
        var filter = AuditFilter()
        filter.accountID = user.id
        let found = try await backend.trail.search(filter, atMost: 10).entries
        #expect(found.map(\.event) == ["user.locked"] && found.first?.account == user.username.key)
      }
      var filter = AuditFilter()
      filter.accountID = UUID()
      let unknown = filter
      await #expect(throws: MFARefusal.notFound) { try await backend.trail.search(unknown, atMost: 10) }
    }
  }

  @Test("One search reads a bounded number of accounts, and continues where it stopped")
  func boundedAccounts() async throws {
    try await TestBackend.with { backend in
      let most = Administration.mostExamined
      try await insert((0..<most + 60).map { "user \($0)" } + ["zoe"], in: backend)
      let administration = Administration(backend.context)
      let first = try await administration.search(AccountFilter(text: "zo"), after: nil, atMost: 50, by: actor)
      #expect(first.accounts.isEmpty && first.examined == most && first.next != nil)
      let second = try await administration.search(
        AccountFilter(text: "zo"), after: first.next, atMost: 50, by: actor)
      #expect(second.accounts.map(\.user.username.text) == ["zoe"] && second.examined == 61 && second.next == nil)
      // The whole name needs no search.
      let exact = try await administration.search(AccountFilter(text: "ZOE"), after: nil, atMost: 50, by: actor)
      #expect(exact.accounts.map(\.user.username.text) == ["zoe"])
      let rest = try await administration.search(
        AccountFilter(text: "ZOE"), after: exact.next, atMost: 50, by: actor)
      #expect(rest.accounts.isEmpty && rest.next == nil)
      let locked = AccountFilter(text: "zoe", state: .locked)
      #expect(try await administration.search(locked, after: nil, atMost: 50, by: actor).accounts.isEmpty)
    }
  }

  /// Appends entries without a chain: a search does not look at it.
  private func append(_ range: ClosedRange<Int64>, to backend: TestBackend, at now: Timestamp) async throws {
    try await backend.context.store.write { records in
      for number in range {
        let event = number.isMultiple(of: 1000) ? "user.locked" : "users.other"
        try records.append(
          AuditEntry(
            sequence: number, at: now, requestID: "request-\(number)", actor: "operator:uid \(number % 7)",
            account: number.isMultiple(of: 2) ? "ada" : nil, event: event, detail: "number=\(number) Détail",
            previous: AuditEntry.origin, keyNumber: 1),
          hash: AuditEntry.origin)
      }
    }
  }

  @Test("One search of the history reads a bounded number of entries, and continues where it stopped")
  func boundedHistory() async throws {
    try await TestBackend.with { backend in
      let most = AuditTrail.mostExamined
      let start = try #require(try await backend.context.store.read { try $0.lastAuditEntry() }).sequence
      try await append(start + 1...Int64(most) + start + 40, to: backend, at: backend.clock.now)
      var filter = AuditFilter()
      filter.text = "NUMBER=\(start + 1) "
      let first = try await backend.trail.search(filter, atMost: 50)
      #expect(first.entries.isEmpty && first.examined == most && first.next == start + 41)
      let second = try await backend.trail.search(filter, before: first.next, atMost: 50)
      #expect(second.entries.map(\.sequence) == [start + 1] && second.next == nil)
    }
  }

  @Test("A search of a time goes on where the clock stepped back")
  func steppedClock() async throws {
    try await TestBackend.with { backend in
      let now = backend.clock.now
      let start = try await backend.context.store.read { try $0.lastAuditEntry() }?.sequence ?? 0
      for (offset, seconds) in [(Int64(1), Int64(100)), (2, 0), (3, 200)] {
        try await append(start + offset...start + offset, to: backend, at: now.advanced(by: .seconds(seconds)))
      }
      var filter = AuditFilter()
      filter.since = now.advanced(by: .seconds(50))
      // The first entry of the store has the time of the machine.
      filter.actor = "operator:"
      let found = try await backend.trail.search(filter, atMost: 10)
      #expect(found.entries.map(\.sequence) == [start + 3, start + 1] && found.next == nil)
    }
  }

  @Test("Each condition of a search of the history holds, alone and together", arguments: TestDatabase.allCases)
  func conditions(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let now = backend.clock.now
      try await append(1001...2000, to: backend, at: now)
      try await append(2001...3000, to: backend, at: now.advanced(by: .seconds(100)))
      func count(_ change: (inout AuditFilter) throws -> Void) async throws -> Int {
        var filter = AuditFilter()
        filter.actor = "operator:"
        try change(&filter)
        return try await backend.trail.search(filter, atMost: 1000).entries.count
      }
      #expect(try await count { $0.event = "user" } == 2)
      #expect(try await count { $0.event = "user.locked" } == 2)
      #expect(try await count { $0.event = "user.lock" } == 0)
      #expect(try await count { $0.account = try Username("ADA") } == 1000)
      #expect(try await count { $0.account = try Username("bob") } == 0)
      #expect(try await count { $0.requestID = "request-250" } == 10)
      #expect(try await count { $0.actor = "UID 3" } == 286)
      #expect(try await count { $0.text = "=1999 D" } == 1)
      #expect(try await count { $0.since = now.advanced(by: .seconds(1)) } == 1000)
      #expect(
        try await count {
          $0.since = now.advanced(by: .seconds(1))
          $0.event = "user"
        } == 1)
      var long = AuditFilter()
      long.text = String(repeating: "a", count: AuditFilter.mostBytes + 1)
      let refused = long
      await #expect(throws: InvalidValue.self) { try await backend.trail.search(refused, atMost: 1) }
    }
  }

  @Test("Locks by wrong guesses are shown with their end, and an operator lifts them", arguments: TestDatabase.allCases)
  func lockouts(_ database: TestDatabase) async throws {
    try await TestBackend.with(store: try await database.open()) { backend in
      let phone = TestPhone(username: "Ada")
      _ = try await backend.setUp(phone)
      for _ in 0..<5 {
        _ = try await backend.verifyLogin("000000", phone, token: try await backend.pendingToken(phone))
      }
      let administration = Administration(backend.context)
      let name = try Username("ada")
      let locked = try await administration.details(of: .name(name), by: actor)
      let lockout = try #require(locked.lockouts.first)
      #expect(locked.lockouts.count == 1 && lockout.purpose == .secondFactor && lockout.isLocked)
      #expect(lockout.failures == 5 && (lockout.until.map { $0 > backend.clock.now } ?? false))
      #expect(locked.sessions.count == 6 && locked.account.devices.count == 1)
      #expect(locked.authenticatorSince != nil && locked.account.backupCodesRemaining > 0)
      try await administration.unlock(name, by: actor)
      #expect(try await administration.details(of: .id(locked.account.user.id), by: actor).lockouts.isEmpty)
    }
  }

  @Test("The end of all sessions is an entry of the history, and leaves the devices")
  func endSessions() async throws {
    try await TestBackend.with { backend in
      let phone = TestPhone(username: "ada")
      let token = try await backend.token(phone)
      #expect(try await backend.get("/mfa/recovery", as: phone.app, token: token).status != 401)
      let administration = Administration(backend.context)
      let ended = try await administration.endSessions(of: Username("ada"), by: actor)
      #expect(ended.count == 1)
      #expect(try await backend.get("/mfa/recovery", as: phone.app, token: token).status == 401)
      let last = try await administration.history(of: Username("ada"), before: nil, atMost: 1, by: actor)
      #expect(last.first?.event == "session.revoked" && last.first?.detail == "count=1 reason=operator")
      #expect(last.first?.actor == "operator:test")
      #expect(try await backend.signIn(phone).status == 200)
      #expect(try await backend.trail.verify().fault == nil)
      await #expect(throws: MFARefusal.notFound) {
        try await administration.endSessions(of: Username("bob"), by: actor)
      }
    }
  }
}
