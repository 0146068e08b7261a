import AttestGate
import ByteCoding
import Databases
import PostgresServers
import PostgresStore
import StoreConformance
import TestSupport
import Testing

@Suite("Cluster membership of gates on one database", .serialized)
struct ClusterMembershipTests {
  @Test("Each gate counts the others; a gate that leaves or sends no heartbeat for its lifetime no longer counts")
  func counting() async throws {
    try await Self.withStores(3) { stores in
      let gates = stores.map { _ in GateNumber.random() }
      for (index, store) in stores.enumerated() {
        #expect(try await store.report(gates[index], life: .seconds(60)) == index + 1)
      }
      #expect(try await stores[0].report(gates[0], life: .seconds(60)) == 3)
      try await stores[2].leave(gates[2])
      #expect(try await stores[0].report(gates[0], life: .seconds(60)) == 2)
      // The reporting gate always counts, for any lifetime. The heartbeat of the other gate is older than zero.
      #expect(try await stores[0].report(gates[0], life: .zero) <= 1)
    }
  }

  @Test("A shared limit is divided as gates come and go, and never exceeded by more than the rounding")
  func limit() async throws {
    try await Self.withStores(3) { stores in
      let numbers = stores.map { _ in GateNumber.random() }
      var views = stores.map { _ in LiveGates(patience: .seconds(30)) }
      let start = ContinuousClock.now
      var second = 0
      func round(_ alive: [Int]) async throws {
        second += 5
        // Twice, so that the gates that reported first also count the later ones.
        for index in alive + alive {
          views[index].see(
            try await stores[index].report(numbers[index], life: .seconds(600)), at: start + .seconds(second))
        }
      }
      func total(_ alive: [Int]) -> Int { alive.map { views[$0].share(of: 100) }.reduce(0, +) }
      try await round([0])
      #expect(total([0]) == 100)
      try await round([0, 1])
      #expect(total([0, 1]) == 100)
      try await round([0, 1, 2])
      #expect(total([0, 1, 2]) == 102)
      // A restart: the gate leaves and returns within the grace period. The other shares do not change.
      try await stores[2].leave(numbers[2])
      try await round([0, 1])
      #expect(total([0, 1]) == 68)
      try await round([0, 1, 2])
      #expect(total([0, 1, 2]) == 102)
      // The gate leaves and does not return.
      try await stores[2].leave(numbers[2])
      for _ in 0..<8 { try await round([0, 1]) }
      #expect(total([0, 1]) == 100)
    }
  }

  @Test("One gate at a time runs maintenance; another may start after it finishes or loses its connection")
  func maintenance() async throws {
    try await Self.withStores(5) { stores in
      let answers = try await StoreInvariant.tally(5) { try await stores[$0].beginMaintenance() }
      #expect(answers == [true: 1, false: 4])
      for store in stores { await store.close() }
    }
    try await Self.withStores(2) { stores in
      #expect(try await stores[0].beginMaintenance())
      #expect(try await !stores[1].beginMaintenance())
      try await stores[0].endMaintenance()
      #expect(try await stores[1].beginMaintenance())
      await stores[1].close()
      let start = ContinuousClock.now
      while try await !stores[0].beginMaintenance() {
        guard .now - start < .seconds(120) else { throw Late() }
      }
    }
  }

  private struct Late: Error {}

  private static func withStores(_ count: Int, _ body: ([PostgresStore]) async throws -> Void) async throws {
    let parameters = try ConnectionParameters(url: await PostgresServer.shared().newURL())
    let stores = (0..<count).map { _ in PostgresStore(parameters) }
    for store in stores { try await store.open() }
    try await body(stores)
    for store in stores { await store.close() }
  }
}
