internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import TestSupport
internal import Testing

extension StoreInvariant {
  static let counters = [
    StoreInvariant("Without a window each counter exceeds the last; gaps are normal, 0 counts as used") {
      store async throws in
      let key = try await registeredKey(in: store)
      let steps: [(counter: UInt32, stored: UInt32?)] = [
        (0, 0), (1, nil), (1, 1), (0, 1), (5, nil), (4, 5), (5, 5), (6, nil), (.max, nil), (.max, .max), (6, .max),
      ]
      for (counter, stored) in steps {
        let expected = stored.map { Admittance.counterReplayed(stored: SignCount($0)) } ?? .admitted
        #expect(try await store.admit(Fixture.use(of: key, counter)) == expected, "counter \(counter)")
      }
    },
    StoreInvariant("A replayed counter spends nothing") { store async throws in
      let key = try await registeredKey(in: store)
      let nonce = Fixture.nonce()
      #expect(try await store.admit(Fixture.use(of: key, 5)) == .admitted)
      #expect(
        try await store.admit(Fixture.use(of: key, 5, over: nonce)) == .counterReplayed(stored: SignCount(5)))
      #expect(try await store.admit(Fixture.use(of: key, 6, over: nonce)) == .admitted)
    },
    StoreInvariant("Inside a window each counter is valid once, below it never") { store async throws in
      for window in [0, 1, 2, 8, 31, 62, 63] {
        let key = try await registeredKey(in: store)
        var model = WindowModel(size: window)
        var random = SeededGenerator(seed: UInt64(window))
        for _ in 0..<200 {
          let counter = model.plausibleCounter(using: &random)
          let admittance = try await store.admit(Fixture.use(of: key, counter, window: window))
          let expected =
            model.admits(counter) ? .admitted : Admittance.counterReplayed(stored: SignCount(model.greatest))
          #expect(admittance == expected, "window \(window), counter \(counter)")
        }
        #expect(try await store.record(of: key.keyID)?.counter == SignCount(model.greatest))
      }
    },
    StoreInvariant("A larger window does not accept counters that had left the smaller one") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 10, window: 2)) == .admitted)
      for counter: UInt32 in 1...7 {
        let admittance = try await store.admit(Fixture.use(of: key, counter, window: 63))
        #expect(admittance == .counterReplayed(stored: SignCount(10)), "counter \(counter)")
      }
      #expect(try await store.admit(Fixture.use(of: key, 8, window: 63)) == .admitted)
    },
    StoreInvariant("A smaller window refuses counters that only the larger one accepted") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 10, window: 8)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: key, 7, window: 2)) == .counterReplayed(stored: SignCount(10)))
      #expect(try await store.admit(Fixture.use(of: key, 8, window: 2)) == .admitted)
    },
    StoreInvariant("A late counter does not decrease the greatest one") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 10, window: 8)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: key, 9, window: 8)) == .admitted)
      #expect(try await store.record(of: key.keyID)?.counter == SignCount(10))
      #expect(try await store.admit(Fixture.use(of: key, 10, window: 8)) == .counterReplayed(stored: SignCount(10)))
    },
  ]
}

/// Models a window with a set instead of bits.
private struct WindowModel {
  let size: Int
  private(set) var greatest: UInt32 = 0
  private var used: Set<UInt32> = [0]

  init(size: Int) { self.size = size }

  mutating func admits(_ counter: UInt32) -> Bool {
    guard !used.contains(counter), Int(counter) >= Int(greatest) - size else { return false }
    used.insert(counter)
    greatest = max(greatest, counter)
    return true
  }

  /// Returns a counter that is usually near the edges of the window, and sometimes far ahead.
  func plausibleCounter(using random: inout SeededGenerator) -> UInt32 {
    let reach = UInt32(size + 3)
    let ahead = UInt32.random(in: 0...19, using: &random) == 0 ? UInt32.random(in: 0...200, using: &random) : 2
    return UInt32.random(in: (greatest - min(greatest, reach))...(greatest + ahead), using: &random)
  }
}
