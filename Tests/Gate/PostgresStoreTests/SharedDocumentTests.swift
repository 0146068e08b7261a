import AttestGate
import Databases
import PostgresServers
import Testing

@testable import PostgresStore

@Suite("Documents that gates share", .timeLimit(.minutes(1)))
struct SharedDocumentTests {
  /// Calls `body` with two stores in one database, as two gates have them.
  private func withTwo(_ body: (PostgresStore, PostgresStore) async throws -> Void) async throws {
    let url = try await PostgresServer.shared().newURL()
    let stores = try (0..<2).map { _ in
      PostgresStore(try ConnectionParameters(url: url), limits: PostgresStore.Limits())
    }
    try await body(stores[0], stores[1])
    for store in stores { await store.close() }
  }

  @Test("What one gate writes another reads, as a whole; a removed document is absent")
  func shared() async throws {
    try await withTwo { one, two in
      #expect(try await two.document("a/b.json") == nil)
      for content: [UInt8] in [[0, 255, 39], [], [UInt8](repeating: 7, count: 100_000)] {
        try await one.setDocument("a/b.json", to: content)
        #expect(try await two.document("a/b.json") == content)
        #expect(try await two.document("a/b") == nil)
      }
      try await two.setDocument("a/b.json", to: nil)
      #expect(try await one.document("a/b.json") == nil)
      try await two.setDocument("a/b.json", to: nil)
    }
  }

  @Test("A write is a notice for the other gates")
  func notice() async throws {
    try await withTwo { one, two in
      try await two.open()
      var notices = two.notices().makeAsyncIterator()
      // The first notice says that the connection listens.
      _ = await notices.next()
      try await one.setDocument("a", to: [1])
      _ = await notices.next()
      #expect(try await two.document("a") == [1])
    }
  }

  @Test("Of two gates one gets a lock, until it gives it back or closes its connection")
  func lock() async throws {
    try await withTwo { one, two in
      #expect(try await one.lockDocuments("x"))
      #expect(try await two.lockDocuments("x") == false)
      #expect(try await two.lockDocuments("y"))
      try await one.unlockDocuments("x")
      #expect(try await two.lockDocuments("x"))
      #expect(try await one.lockDocuments("x") == false)
      await two.close()
      // The server notices the end of the connection a moment later.
      let deadline = ContinuousClock.now + .seconds(120)
      while try await !one.lockDocuments("x") {
        try #require(ContinuousClock.now < deadline)
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }
}
