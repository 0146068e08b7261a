internal import AttestGate
internal import Testing

extension StoreLaw {
  static let roster = [
    StoreLaw("A gate that reports counts itself, however often it does") { store async throws in
      let gate = GateNumber.random()
      for _ in 0..<3 { #expect(try await store.report(gate, life: .seconds(60)) == 1) }
      try await store.leave(gate)
      try await store.leave(gate)
    },
    StoreLaw("Housekeeping that has ended can begin again") { store async throws in
      for _ in 0..<3 {
        #expect(try await store.beginHousekeeping())
        try await store.endHousekeeping()
      }
    },
  ]
}
