import ByteCoding
import Foundation
import Locking
@testable import MFADomain
import MFAFixtures
@testable import MFAStore
import Databases
import PostgresServers
import Testing

@Suite("Store deadlines", .serialized, .timeLimit(.minutes(2)))
struct StoreDeadlineTests {
  /// A connection of another process that holds the lock of all writers.
  private final class Holder {
    private let connection: StoreConnection

    init(_ url: String) throws {
      connection = try StoreConnection(url: url)
      try connection.execute("SET idle_in_transaction_session_timeout = 0")
      try connection.execute("BEGIN", "SELECT pg_advisory_xact_lock(\(0x6D6661))")
    }

    func release() throws { try connection.execute("COMMIT") }
  }

  @Test(
    "while the lock of writers is held, reads are answered, and an identity that needs a record gets 503 in time")
  func heldLock() async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = try PostgresMFAStore(url: url)
    try await TestBackend.with(store: store, patience: .milliseconds(500)) { backend in
      let phone = TestPhone()
      try await backend.enrol(phone)
      let token = try #require(try await backend.signIn(phone)["token"]?.text)
      let path = "/devices/\(phone.username)"
      #expect(try await backend.get(path, as: phone.app, token: token).status == 200)
      try await TestSocket.with(backend, as: phone.app, token: token) { socket in
        let before = try await Self.identities(store)
        let holder = try Holder(url)
        async let later = backend.post("/auth/initiate", phone.naming, as: phone.app)
        for _ in 1...3 {
          #expect(try await backend.get(path, as: phone.app, token: token).status == 200)
          // The identity of an older gate, which does not name its request.
          let answer = try await backend.send(
            "GET", "/api/v1" + path, text: nil, assertion: backend.gate.assertion(for: phone.app), token: token)
          #expect(answer.status == 503 && answer["code"] == "unavailable" && answer.headers["retry-after"] == "1")
        }
        await #expect(throws: (any Error).self) {
          try await TestSocket.with(backend, as: phone.app) { _ in }
        }
        try holder.release()
        // The request with effects waits, and then succeeds. Without the deadline, the requests before would have waited
        // until the database gives up to wait for a lock, and this one with them.
        #expect(try await later.status == 200)
        #expect(try await backend.get(path, as: phone.app, token: token).status == 200)
        // The requests that were given up wrote no identity, except perhaps the last one, whose time ended while the lock
        // was released; those that only read need none.
        #expect([before + 1, before + 2].contains(try await Self.identities(store)))
        #expect(try await socket.call("devices.list", ["username": .string(phone.username)])["result"] != nil)
      }
    }
  }

  private static func identities(_ store: any Store) async throws -> Int {
    try await store.read { records in
      try (records as? SQLRecords)?.sql.rows("SELECT COUNT(*) AS count FROM gate_identities", []).first?.int("count")
        ?? 0
    }
  }

  @Test("a call whose deadline has passed does not begin, on both databases", arguments: TestDatabase.allCases)
  func late(_ database: TestDatabase) async throws {
    let store = try await database.open()
    let past = ContinuousClock.now
    await StoreDeadline.$current.withValue(past) {
      await #expect(throws: MFAStoreError.late) {
        try await store.write { try $0.spend(identity: "a", until: Timestamp(milliseconds: 1)) }
      }
      await #expect(throws: MFAStoreError.late) { try await store.read { try $0.dataKeys() } }
    }
    #expect(try await store.write { try $0.spend(identity: "a", until: Timestamp(milliseconds: 1)) })
  }

  private typealias Give = @Sendable (Result<Int, any Error>) -> Void

  @Test("a call within its deadline returns its result, and a late call throws while its work continues")
  func within() async throws {
    let result = try await StoreDeadline.within(.seconds(30)) {
      try await StoreDeadline.answer { (give: @escaping Give) in give(.success(7)) }
    }
    #expect(result == 7)
    await #expect(throws: CancellationError.self) {
      try await StoreDeadline.within(.seconds(30)) {
        try await StoreDeadline.answer { (give: @escaping Give) in give(.failure(CancellationError())) }
      }
    }
    let kept = LockedValue<Give?>(nil)
    await #expect(throws: MFAStoreError.late) {
      try await StoreDeadline.within(.milliseconds(20)) {
        try await StoreDeadline.answer { (give: @escaping Give) in kept.withLock { $0 = give } }
      }
    }
    // An answer after the deadline has no receiver.
    kept.withLock { $0 }?(.success(7))
  }

  @Test("of many calls with deadlines each gets its own answer, and those without an answer are given up")
  func manyCalls() async throws {
    let answers = try await withThrowingTaskGroup { group in
      for number in 0..<200 {
        group.addTask {
          do {
            return try await StoreDeadline.within(number.isMultiple(of: 2) ? .seconds(30) : .milliseconds(10)) {
              try await StoreDeadline.answer { (give: @escaping Give) in
                if number.isMultiple(of: 2) { Task { give(.success(number)) } }
              }
            }
          } catch let error as MFAStoreError where error == .late {
            return -number
          }
        }
      }
      return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
    }
    #expect(answers == Set((0..<200).map { $0.isMultiple(of: 2) ? $0 : -$0 }))
  }

  @Test("calls whose deadline has passed leave the queue")
  func room() async throws {
    let store = try SQLiteMFAStore.ephemeral(mostWaiting: 2)
    let (inside, entered) = AsyncStream.makeStream(of: Void.self)
    let hold = DispatchSemaphore(value: 0)
    let holding = Task {
      try await store.write { _ in
        entered.yield()
        hold.wait()
      }
    }
    for await _ in inside { break }
    for id in ["a", "b"] {
      await #expect(throws: MFAStoreError.late) {
        try await StoreDeadline.within(.milliseconds(20)) {
          try await store.write { try $0.spend(identity: id, until: Timestamp(milliseconds: 1)) }
        }
      }
    }
    let third = Task { try await store.write { try $0.spend(identity: "c", until: Timestamp(milliseconds: 1)) } }
    try await Task.sleep(for: .milliseconds(50))
    hold.signal()
    #expect(try await third.value)
    try await holding.value
    #expect(try await store.write { try $0.spend(identity: "a", until: Timestamp(milliseconds: 1)) })
  }
}
