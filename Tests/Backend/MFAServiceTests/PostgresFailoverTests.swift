import ByteCoding
import Dispatch
import Locking
import MFADomain
@testable import MFAStore
import Databases
import PostgresServers
import Testing

@Suite("PostgreSQL failover", .timeLimit(.minutes(2)))
struct PostgresFailoverTests {
  @Test(
    "a backend that stops during a write delays the others by some 100 ms, and begins its write again when it goes on",
    arguments: [WriteExclusion.writers, .rows])
  func frozenWriter(_ others: WriteExclusion) async throws {
    let url = try await PostgresServer.shared().newURL()
    let (frozen, other) = (try PostgresMFAStore(url: url), try PostgresMFAStore(url: url))
    let (release, entered) = (DispatchSemaphore(value: 0), AsyncStream<Void>.makeStream())
    let runs = LockedValue(0)
    let until = Timestamp(milliseconds: 1)
    let stopped = Task {
      try await frozen.write(excluding: others) { records in
        _ = try records.spend(identity: "a", until: until)
        // Stopped with its locks, as by SIGSTOP.
        let run = runs.withLock { runs in
          runs += 1
          return runs
        }
        if run == 1 {
          entered.continuation.yield()
          release.wait()
        }
        return try records.spend(identity: "b", until: until)
      }
    }
    for await _ in entered.stream { break }
    // While the frozen one keeps its locks. Without a limit, the write would wait nine seconds and then fail.
    #expect(try await other.write { try $0.spend(identity: "a", until: until) })
    #expect(PostgresMFAStore.longestPause == .milliseconds(100))
    release.signal()
    #expect(try await stopped.value)
    // On a busy machine the second run may rest for too long as well.
    #expect(runs.withLock { $0 } >= 2)
  }

  @Test("a transaction that the server ends for its rest just before the commit begins again")
  func endedBeforeCommit() async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = try PostgresMFAStore(url: url)
    // The first commit meets what a server answers whose patience ended while the commit was on its way.
    try StoreConnection(url: url).execute(
      "CREATE SEQUENCE commits",
      """
      CREATE FUNCTION rest() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF nextval('commits') = 1 THEN RAISE EXCEPTION 'too long' USING ERRCODE = '25P03'; END IF;
        RETURN NULL;
      END $$
      """,
      """
      CREATE CONSTRAINT TRIGGER rest AFTER INSERT ON gate_identities DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION rest()
      """)
    let until = Timestamp(milliseconds: 1)
    #expect(try await store.write { try $0.spend(identity: "a", until: until) })
    #expect(try await store.write { try !$0.spend(identity: "a", until: until) })
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
