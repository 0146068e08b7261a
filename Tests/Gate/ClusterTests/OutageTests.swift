import ByteCoding
import GateProcesses
import PostgresServers
import PostgresStore
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A database outage and recovery", .serialized)
struct OutageTests {
  @Test("New sockets are refused, open sockets stay, and new sockets open again without a restart")
  func outage() async throws {
    let server = try await PostgresServer.start()
    try await TwoGates.serving(on: server) { gates in
      let phone = try await gates.registeredPhone()
      let socket = try await gates.visitors[1].open(as: phone, counter: 1)
      let nonce = try await gates.visitors[0].challenge()
      try await server.crash()
      for visitor in gates.visitors {
        #expect(try await visitor.refusal(of: phone.credentials(over: nonce, counter: 2)) == "store_unavailable")
      }
      #expect(try await socket.exchange(.text("alive")) == .text("alive"))
      // The gate issues nonces without the store.
      _ = try await gates.visitors[1].challenge()

      try await server.start()
      for (number, visitor) in gates.visitors.enumerated() {
        try await comesBack {
          try await visitor.refusal(
            of: phone.credentials(over: visitor.challenge(), counter: UInt32(number) * 1000 + $0))
        }
      }
      #expect(try await socket.exchange(.text("alive")) == .text("alive"))
    }
  }

  @Test("A gate that misses a revocation during an outage closes the sockets once it reaches the database")
  func revocationMeanwhile() async throws {
    let server = try await PostgresServer.start()
    try await TwoGates.serving(on: server) { gates in
      let phone = try await gates.registeredPhone()
      let socket = try await gates.visitors[1].open(as: phone, counter: 1)
      // All connections of the gates are closed at the moment of the revocation, so that no notice arrives.

      try await server.sql(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sallyport'
          AND pid <> pg_backend_pid();
        """)

      #expect(try await gates.store.revoke(phone.registeredID, at: .now()))
      let (code, after) = try await ending(of: socket, since: .now)
      #expect(code == 3003)
      // A second on an idle machine; a gate that misses the change closes nothing.
      #expect(after < .seconds(60))
    }
  }

  /// Tries with rising counters until an attempt is admitted.
  private func comesBack(_ attempt: (UInt32) async throws -> String?) async throws {
    let start = ContinuousClock.now
    var counter: UInt32 = 10
    while let refusal = try await attempt(counter) {
      guard .now - start < .seconds(120) else { throw Unexpected("still refused: \(refusal)") }
      counter += 1
    }
  }
}
