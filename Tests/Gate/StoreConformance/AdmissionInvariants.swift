internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let admissions = [
    StoreInvariant("An admission updates the counter and the time") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 3)) == .admitted)
      let record = try await store.record(of: key.keyID)
      #expect(record?.counter == SignCount(3))
      #expect(record?.lastUsedAt == Fixture.now)
    },
    StoreInvariant("A nonce that registered a key admits no client") { store async throws in
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      let use = Fixture.use(of: registration.key, 1, over: registration.request.nonce)
      #expect(try await store.admit(use) == .nonceSpent)
      #expect(try await store.record(of: registration.key.keyID)?.counter == .zero)
    },
    StoreInvariant("A nonce that admitted a client registers no key") { store async throws in
      let nonce = Fixture.nonce()
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 1, over: nonce)) == .admitted)
      let registration = Fixture.registration(over: nonce)
      #expect(try await store.register(registration) == .nonceSpent)
      #expect(try await store.record(of: registration.key.keyID) == nil)
    },
    StoreInvariant("A nonce admits once, for any key and counter") { store async throws in
      let nonce = Fixture.nonce()
      let (first, second) = (try await registeredKey(in: store), try await registeredKey(in: store))
      #expect(try await store.admit(Fixture.use(of: first, 1, over: nonce)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: first, 2, over: nonce)) == .nonceSpent)
      #expect(try await store.admit(Fixture.use(of: second, 1, over: nonce)) == .nonceSpent)
      #expect(try await store.record(of: second.keyID)?.counter == .zero)
    },
    StoreInvariant("An unknown key is not admitted and spends nothing") { store async throws in
      let nonce = Fixture.nonce()
      #expect(try await store.admit(Fixture.use(of: Fixture.key(), 1, over: nonce)) == .unknownKey)
      #expect(try await store.register(Fixture.registration(over: nonce)) == .inserted)
    },
    StoreInvariant("A revoked key is refused and spends nothing; a restored key is admitted") { store async throws in
      let key = try await registeredKey(in: store)
      let nonce = Fixture.nonce()
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      #expect(try await store.admit(Fixture.use(of: key, 1, over: nonce)) == .revoked)
      #expect(try await store.record(of: key.keyID)?.counter == .zero)
      #expect(try await store.restore(key.keyID))
      #expect(try await store.admit(Fixture.use(of: key, 1, over: nonce)) == .admitted)
    },
    StoreInvariant("A second revocation keeps the first date") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      #expect(try await store.revoke(key.keyID, at: Fixture.now.advanced(by: .seconds(9))))
      #expect(try await store.record(of: key.keyID)?.revokedAt == Fixture.now)
    },
    StoreInvariant("An unregistered key can be neither revoked nor restored") { store async throws in
      #expect(try await !store.revoke(Fixture.key().keyID, at: Fixture.now))
      #expect(try await !store.restore(Fixture.key().keyID))
    },
  ]
}
