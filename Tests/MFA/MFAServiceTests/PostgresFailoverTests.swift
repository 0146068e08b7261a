import ByteCoding
import Dispatch
import MFADomain
@testable import MFAStore
import Postgres
import PostgresServers
import Testing

@Suite("PostgreSQL whose server, or whose other backend, is not what it was", .timeLimit(.minutes(2)))
struct PostgresFailoverTests {
  @Test("a backend that stops in the middle of a write holds the others up for seconds, and not for ever")
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
    // It has connected anew.
    #expect(try await frozen.write { try !$0.spend(identity: "a", until: Timestamp(milliseconds: 1)) })
  }

  @Test("a connection to a server that is read-only is dropped, and none is made")
  func demoted() async throws {
    let server = try await PostgresServer.start(options: ["fsync": "off"])
    let store = try PostgresMFAStore(url: PostgresServer.url(of: [server]))
    let spend = { @Sendable (id: String) in
      try await store.write { try $0.spend(identity: id, until: Timestamp(milliseconds: 1)) }
    }
    #expect(try await spend("a"))
    // As a primary that is demoted tells those that are connected to it.
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
