import AttestGate
import Databases
import Foundation
import GateProcesses
import PostgresServers
import PostgresStore
import StoreConformance
import TestSupport
import Testing

/// Whether the long histories were requested with `scripts/test --cluster`.
private let runsHistories = ProcessInfo.processInfo.environment["SALLYPORT_TEST_CLUSTER"] == "1"

@Suite("Histories of crashes", .serialized, .enabled(if: runsHistories))
struct CrashHistoryTests {
  @Test(
    "After a database crash and restart no nonce or counter is accepted twice and no acknowledged write is lost",
    arguments: 1...20)
  func crash(_ seed: Int) async throws {
    let server = try await PostgresServer.start()
    try await Self.drive(at: PostgresServer.url(of: [server]), seed: seed) { history in
      for _ in 0..<2 {
        try await history.goOn()
        try await server.crash()
        try await server.start()
      }
    }
  }

  @Test(
    "After a standby's promotion no nonce or counter is accepted twice and no acknowledged write is lost",
    arguments: 1...20)
  func failover(_ seed: Int) async throws {
    let primary = try await PostgresServer.start()
    let standby = try await primary.standby(name: "standby")
    try await primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
    try await primary.sql("SELECT pg_reload_conf()")
    try await Self.repeatedly { try await primary.sql("SELECT sync_state FROM pg_stat_replication") == ["sync"] }
    try await Self.drive(at: PostgresServer.url(of: [primary, standby]), seed: seed) { history in
      try await history.goOn()
      try await primary.crash()
      try await standby.promote()
    }
  }

  /// Runs the stores of two gates under load through `events`, lets them continue afterwards, and checks their
  /// answers.
  private static func drive(
    at url: String, seed: Int, _ events: (History) async throws -> Void
  ) async throws {
    var limits = PostgresStore.Limits()
    limits.patience = .seconds(2)
    let parameters = try ConnectionParameters(url: url)
    let stores = [PostgresStore(parameters, limits: limits), PostgresStore(parameters, limits: limits)]
    let history = History()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask { await history.work(on: stores, seed: UInt64(seed * 100 + worker)) }
      }
      try await events(history)
      try await history.goOn()
      group.cancelAll()
    }
    // At least one call was refused: the crash hit calls in progress.
    #expect(history.countOfRefusals > 0)
    for store in stores { await store.close() }
    let reader = PostgresStore(parameters)
    try await history.check(in: reader)
    await reader.close()
  }

  static func repeatedly(_ question: () async throws -> Bool) async throws {
    let start = ContinuousClock.now
    while try await !question() {
      guard .now - start < .seconds(30) else { throw Unexpected("waited too long") }
    }
  }
}

extension History {
  /// Returns when 200 more admissions have succeeded.
  fileprivate func goOn() async throws {
    let goal = countOfAdmissions + 200
    let start = ContinuousClock.now
    while countOfAdmissions < goal {
      guard .now - start < .seconds(60) else { throw Unexpected("no admissions: \(countOfAdmissions) of \(goal)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
