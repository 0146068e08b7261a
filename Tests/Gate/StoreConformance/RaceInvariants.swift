internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let races = [
    StoreInvariant("Of 50 concurrent admissions with one nonce, one succeeds, in 20 rounds") { store async throws in
      let key = try await registeredKey(in: store)
      for round in 0..<20 {
        let nonce = Fixture.nonce()
        let base = UInt32(round * 50)
        let answers = try await tally(50) { number in
          try await store.admit(Fixture.use(of: key, base + UInt32(number) + 1, over: nonce))
        }
        #expect(answers[.admitted] == 1)
        #expect(answers.values.reduce(0, +) == 50)
      }
    },
    StoreInvariant("Of 50 concurrent admissions with one counter, one succeeds") { store async throws in
      for window in [0, 8] {
        let key = try await registeredKey(in: store)
        let answers = try await tally(50) { _ in try await store.admit(Fixture.use(of: key, 9, window: window)) }
        #expect(answers == [.admitted: 1, .counterReplayed(stored: SignCount(9)): 49])
      }
    },
    StoreInvariant("Counters only rise under 200 concurrent admissions, and the greatest one is always admitted") {
      store async throws in
      let key = try await registeredKey(in: store)
      let answers = try await tally(200) { number in
        try await store.admit(Fixture.use(of: key, UInt32(200 - number)))
      }
      #expect(answers[.admitted, default: 0] >= 1)
      #expect(try await store.record(of: key.keyID)?.counter == SignCount(200))
    },
    StoreInvariant("With a window, 60 concurrent admissions in any order all succeed") { store async throws in
      let key = try await registeredKey(in: store)
      let answers = try await tally(60) { number in
        try await store.admit(Fixture.use(of: key, UInt32(60 - number), window: 63))
      }
      #expect(answers == [.admitted: 60])
    },
    StoreInvariant("Of 50 concurrent registrations of one key, one succeeds") { store async throws in
      let key = Fixture.key()
      let answers = try await tally(50) { _ in try await store.register(Fixture.registration(of: key)) }
      #expect(answers == [.inserted: 1, .keyExists: 49])
    },
    StoreInvariant("Of 50 concurrent registrations with one nonce, one succeeds") { store async throws in
      let nonce = Fixture.nonce()
      let answers = try await tally(50) { _ in try await store.register(Fixture.registration(over: nonce)) }
      #expect(answers == [.inserted: 1, .nonceSpent: 49])
    },
    StoreInvariant("Of 50 identical concurrent requests, one registers the key, all succeed") { store async throws in
      let registration = Fixture.registration()
      let answers = try await tally(50) { _ in try await store.register(registration) }
      #expect(answers == [.inserted: 1, .sameRequest: 49])
    },
    StoreInvariant("A nonce used to register and to admit at the same time does one of the two") { store async throws in
      let key = try await registeredKey(in: store)
      for round in 1...20 {
        let nonce = Fixture.nonce()
        let succeeded = try await tally(2) { number in
          number == 0
            ? try await store.register(Fixture.registration(over: nonce)) == .inserted
            : try await store.admit(Fixture.use(of: key, UInt32(round), over: nonce)) == .admitted
        }
        #expect(succeeded == [true: 1, false: 1])
      }
    },
    StoreInvariant("A nonce that is removed during replays is not accepted a second time, in 20 rounds") {
      store async throws in
      let key = try await registeredKey(in: store)
      for round in UInt32(0)..<20 {
        let issued = Fixture.now.advanced(by: .seconds(Int(round)))
        let nonce = Fixture.nonce(issuedAt: issued)
        #expect(try await store.admit(Fixture.use(of: key, round * 100 + 1, over: nonce)) == .admitted)
        let admitted = try await tally(40) { number in
          if number == 20 { try await store.forgetNonces(issuedBy: issued) }
          let use = Fixture.use(of: key, round * 100 + UInt32(number) + 2, over: nonce)
          return try await store.admit(use) == .admitted
        }
        #expect(admitted == [false: 40], "round \(round)")
      }
    },
    StoreInvariant("Concurrent admissions of different keys all succeed") { store async throws in
      var keys: [DeviceKey] = []
      for _ in 0..<50 { keys.append(try await registeredKey(in: store)) }
      let all = keys
      let answers = try await tally(50) { number in try await store.admit(Fixture.use(of: all[number], 1)) }
      #expect(answers == [.admitted: 50])
    },
  ]
}
