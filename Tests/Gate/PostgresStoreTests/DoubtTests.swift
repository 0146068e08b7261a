import AppAttest
import AttestGate
import Databases
import PostgresServers
import StoreConformance
import Testing

@testable import PostgresStore

@Suite("A commit with an unknown outcome is a refusal", .serialized)
struct DoubtTests {
  /// The event that stops the wait of a commit for a missing standby.
  enum Event: CaseIterable {
    /// The gate's timeout expires first.
    case silence
    /// The server process is terminated: it has committed, and sends no answer.
    case termination
    /// The wait is canceled: the server answers that it has committed, with a warning.
    case cancellation
  }

  @Test("No client is admitted, no call is retried, and the nonce stays spent", arguments: Event.allCases)
  func doubt(_ event: Event) async throws {
    let server = try await PostgresServer.start()
    var limits = PostgresStore.Limits()
    // Timeouts that must not end the wait are longer than any delay of a test machine.
    limits.patience = event == .silence ? .seconds(3) : .seconds(60)
    limits.statementTimeout = .seconds(60)
    let store = PostgresStore(try ConnectionParameters(url: PostgresServer.url(of: [server])), limits: limits)
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    try await Self.setStandby("nobody", of: server)
    let use = Fixture.use(of: registration.key, 7)
    async let answer = Self.answer(store, use)
    let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    switch event {
    case .silence: break
    case .termination:
      try await Self.repeatedly { try await server.sql("SELECT pg_terminate_backend(pid) \(waiting)") == ["t"] }
    case .cancellation:
      try await Self.repeatedly { try await server.sql("SELECT pg_cancel_backend(pid) \(waiting)") == ["t"] }
    }
    guard case .failure(.inDoubt) = await answer else {
      Issue.record("\(await answer)")
      return
    }
    try await Self.setStandby("", of: server)
    // The commit did happen. For this reason a call must not be retried.
    try await Self.repeatedly { (try? await store.record(of: registration.key.keyID))??.counter.value == 7 }
    #expect(try await store.admit(Fixture.use(of: registration.key, 8, over: use.nonce)) == .nonceSpent)
    #expect(try await store.admit(Fixture.use(of: registration.key, 8)) == .admitted)
    await store.close()
  }

  private static func answer(_ store: PostgresStore, _ use: KeyUse) async -> Result<Admittance, StoreError> {
    do throws(StoreError) { return .success(try await store.admit(use)) } catch { return .failure(error) }
  }

  private static func setStandby(_ name: String, of server: PostgresServer) async throws {
    try await server.sql("ALTER SYSTEM SET synchronous_standby_names = '\(name)'")
    try await server.sql("SELECT pg_reload_conf()")
    try await repeatedly { try await server.sql("SHOW synchronous_standby_names") == [name] }
  }

  /// Polls `question` until it returns `true`.
  private static func repeatedly(_ question: () async throws -> Bool) async throws {
    let start = ContinuousClock.now
    while try await !question() {
      guard .now - start < .seconds(120) else { throw WaitedTooLong() }
    }
  }

  private struct WaitedTooLong: Error {}
}
