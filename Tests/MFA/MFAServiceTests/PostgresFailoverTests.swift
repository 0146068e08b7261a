import ByteCoding
import Dispatch
import MFADomain
@testable import MFAStore
import Postgres
import PostgresServers
import Testing

@Suite("PostgreSQL failover", .timeLimit(.minutes(2)))
struct PostgresFailoverTests {
  @Test("a backend that stops during a write delays the other backends for less than 15 seconds")
  func frozenWriter() async throws {
    let url = try await PostgresServer.shared().newURL()
    let (frozen, other) = (try PostgresMFAStore(url: url), try PostgresMFAStore(url: url))
    let (release, entered) = (DispatchSemaphore(value: 0), AsyncStream<Void>.makeStream())
    let stopped = Task {
      try await frozen.write { records in
        entered.continuation.yield()
        release.wait()
        _ = try records.dataKeys()
      }
    }
    for await _ in entered.stream { break }
    let start = ContinuousClock.now
    try await other.write { _ = try $0.spend(identity: "a", until: Timestamp(milliseconds: 1)) }
    #expect(ContinuousClock.now - start < .seconds(15))
    release.signal()
    await #expect(throws: MFAStoreError.self) { try await stopped.value }
    // The backend has connected again.
    #expect(try await frozen.write { try !$0.spend(identity: "a", until: Timestamp(milliseconds: 1)) })
  }

  @Test("a connection to a read-only server is closed, and a new one is refused")
  func demoted() async throws {
    let server = try await PostgresServer.start(options: ["fsync": "off"])
    let store = try PostgresMFAStore(url: PostgresServer.url(of: [server]))
    let spend = { @Sendable (id: String) in
      try await store.write { try $0.spend(identity: id, until: Timestamp(milliseconds: 1)) }
    }
    #expect(try await spend("a"))
    // A demoted primary refuses writes in the same way.
    try await server.sql("ALTER ROLE postgres SET default_transaction_read_only = on")
    let connection = try StoreConnection(url: PostgresServer.url(of: [server]) + "&target_session_attrs=any")
    do {
      try connection.execute("CREATE TABLE other (id TEXT)")
      Issue.record("it wrote")
    } catch PostgresError.refused(let error) {
      #expect(error.code == "25006")
    }
    #expect(connection.isBroken)
    #expect(throws: PostgresError.self) {
      try StoreConnection(url: PostgresServer.url(of: [server]))
    }
    #expect(try await spend("b"))
  }
}
