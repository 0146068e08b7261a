internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let androidKeys = [
    StoreInvariant("A registered key of Android is found with all its values, and has no receipt") {
      store async throws in
      for key in [Fixture.androidKey(), Fixture.androidKey(patchLevel: nil)] {
        let registration = Fixture.registration(of: key)
        #expect(try await store.register(registration) == .inserted)
        let record = KeyRecord(
          key: key, request: registration.request, registeredAt: registration.registeredAt, counter: .zero,
          lastUsedAt: nil, revokedAt: nil, risk: StoredRisk(KeyRisk(metric: 1, at: registration.registeredAt)))
        #expect(try await store.record(of: key.keyID) == record)
        #expect(try await store.receipt(of: key.keyID) == nil)
        #expect(try await store.register(registration) == .sameRequest)
      }
    },
    StoreInvariant("An admission of a key of Android spends the nonce and notes the use") { store async throws in
      let key = try await registeredKey(in: store, Fixture.androidKey())
      let nonce = Fixture.nonce()
      let later = Fixture.now.advanced(by: .seconds(5))
      #expect(try await store.admit(Fixture.use(of: key, over: nonce, at: later)) == .admitted)
      #expect(try await store.record(of: key.keyID)?.lastUsedAt == later)
      #expect(try await store.admit(Fixture.use(of: key, over: nonce)) == .nonceSpent)
      #expect(try await store.admit(Fixture.use(of: key)) == .admitted)
    },
    StoreInvariant("A revoked, removed or unknown key of Android is refused and spends nothing") { store async throws in
      let key = try await registeredKey(in: store, Fixture.androidKey())
      let nonce = Fixture.nonce()
      _ = try await store.revoke(key.keyID, at: Fixture.now)
      #expect(try await store.admit(Fixture.use(of: key, over: nonce)) == .revoked)
      _ = try await store.restore(key.keyID)
      #expect(try await store.admit(Fixture.use(of: key, over: nonce)) == .admitted)
      #expect(try await store.remove([key.keyID], unusedSince: nil) == 1)
      #expect(try await store.admit(Fixture.use(of: key)) == .unknownKey)
    },
    StoreInvariant("A key with a counter is never admitted without one, nor a key of Android with one") {
      store async throws in
      let nonce = Fixture.nonce()
      let counted = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: counted, over: nonce)) == .counterReplayed(stored: .zero))
      let uncounted = try await registeredKey(in: store, Fixture.androidKey())
      #expect(try await store.admit(Fixture.use(of: uncounted, 7, over: nonce)) == .counterReplayed(stored: .zero))
      #expect(try await store.record(of: uncounted.keyID)?.counter == .zero)
      // Nothing was spent.
      #expect(try await store.admit(Fixture.use(of: uncounted, over: nonce)) == .admitted)
    },
    StoreInvariant("Of 50 concurrent admissions of Android with one nonce, one succeeds, in 20 rounds") {
      store async throws in
      var keys: [DeviceKey] = []
      for _ in 0..<5 { keys.append(try await registeredKey(in: store, Fixture.androidKey())) }
      let all = keys
      for _ in 0..<20 {
        let nonce = Fixture.nonce()
        let answers = try await tally(50) { number in
          try await store.admit(Fixture.use(of: all[number % 5], over: nonce))
        }
        #expect(answers == [.admitted: 1, .nonceSpent: 49])
      }
    },
    StoreInvariant("Both platforms admit at the same time, and each nonce once") { store async throws in
      let android = try await registeredKey(in: store, Fixture.androidKey())
      let ios = try await registeredKey(in: store)
      for round in UInt32(0)..<10 {
        let nonce = Fixture.nonce()
        let answers = try await tally(20) { number in
          try await store.admit(
            number % 2 == 0
              ? Fixture.use(of: android, over: nonce)
              : Fixture.use(of: ios, round * 20 + UInt32(number) + 1, over: nonce))
        }
        #expect(answers[.admitted] == 1)
      }
    },
    StoreInvariant("Lists select keys by platform, and an app by its name") { store async throws in
      let ios = try await registeredKey(in: store, Fixture.key(of: "AAABBBCCC1.com.example.app"))
      let android = try await registeredKey(in: store, Fixture.androidKey(package: "com.example.other"))
      func picked(_ selection: KeySelection) async throws -> [KeyID] {
        try await store.keys(selection, after: nil, limit: 9).records.map(\.key.keyID)
      }
      #expect(try await picked(KeySelection(platform: .android)) == [android.keyID])
      #expect(try await picked(KeySelection(platform: .ios)) == [ios.keyID])
      #expect(try await picked(KeySelection(app: "com.example.other")) == [android.keyID])
      #expect(try await picked(KeySelection(platform: .ios, app: "com.example.other")).isEmpty)
      #expect(try await store.keys(.all, after: nil, limit: 9).records.count == 2)
    },
    StoreInvariant("Entries of Android keys are copied and merged like others") { store async throws in
      let key = Fixture.androidKey()
      let registration = Fixture.registration(of: key)
      let entry = KeyEntry(
        record: KeyRecord(
          key: key, request: registration.request, registeredAt: Fixture.now, counter: .zero,
          lastUsedAt: Fixture.now, revokedAt: Fixture.now),
        usedCounters: .max, receipt: [])
      #expect(try await store.merge([entry]) == 1)
      #expect(try await store.merge([entry]) == 0)
      let copied = try await store.entries(after: nil, limit: 9)
      #expect(copied.map(\.record) == [entry.record] && copied.first?.receipt == [])
      #expect(try await store.admit(Fixture.use(of: key)) == .revoked)
    },
  ]
}
