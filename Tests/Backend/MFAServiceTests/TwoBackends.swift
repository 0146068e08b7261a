import MFADomain
import MFAFixtures
import TestSupport

/// Two backends with one database, gate and clock, like two processes: neither knows what the other has in memory.
enum TwoBackends {
  static func with(
    _ database: TestDatabase, _ body: (_ first: TestBackend, _ second: TestBackend) async throws -> Void
  ) async throws {
    try await Places.withTemporaryFolder { folder in
      let clock = ManualClock()
      let gate = try TestGate(clock: clock.wall)
      let keys = KeyEncryptionKeys.ephemeral(.system)
      let open = try await database.opener(in: folder)
      try await TestBackend.with(store: open(), gate: gate, clock: clock, keys: keys) { first in
        try await TestBackend.with(store: open(), gate: gate, clock: clock, keys: keys) { second in
          try await body(first, second)
        }
      }
    }
  }
}
