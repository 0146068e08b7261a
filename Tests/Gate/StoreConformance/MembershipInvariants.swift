internal import AttestGate
internal import Testing

extension StoreInvariant {
  static let membership = [
    StoreInvariant("A gate that reports counts itself once, for any number of reports") { store async throws in
      let gate = GateNumber.random()
      for _ in 0..<3 { #expect(try await store.report(gate, life: .seconds(60)) == 1) }
      try await store.leave(gate)
      try await store.leave(gate)
    },
    StoreInvariant("Maintenance can begin again after it has finished") { store async throws in
      for _ in 0..<3 {
        #expect(try await store.beginMaintenance())
        try await store.endMaintenance()
      }
    },
  ]
}
