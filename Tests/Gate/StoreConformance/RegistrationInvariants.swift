internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let registrations = [
    StoreInvariant("A registered key is found with all its values") { store async throws in
      for key in [Fixture.key(), Fixture.key(category: nil, version: nil)] {
        let registration = Fixture.registration(of: key)
        #expect(try await store.register(registration) == .inserted)
        let record = KeyRecord(
          key: key, request: registration.request, registeredAt: registration.registeredAt, counter: .zero,
          lastUsedAt: nil, revokedAt: nil)
        #expect(try await store.record(of: key.keyID) == record)
        #expect(try await store.receipt(of: key.keyID) == registration.receipt)
      }
    },
    StoreInvariant("An unregistered key is not found") { store async throws in
      let key = Fixture.key()
      #expect(try await store.record(of: key.keyID) == nil)
      #expect(try await store.receipt(of: key.keyID) == nil)
    },
    StoreInvariant("A repeated request is recognized and does not change the counter") { store async throws in
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      #expect(try await store.admit(Fixture.use(of: registration.key, 7)) == .admitted)
      #expect(try await store.register(registration) == .sameRequest)
      #expect(try await store.record(of: registration.key.keyID)?.counter == SignCount(7))
    },
    StoreInvariant("A repeated request for a key revoked since then is reported as revoked") { store async throws in
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      #expect(try await store.revoke(registration.key.keyID, at: Fixture.now))
      #expect(try await store.register(registration) == .revoked)
    },
    StoreInvariant("Another request never replaces a key and spends nothing") { store async throws in
      let first = Fixture.registration()
      _ = try await store.register(first)
      let nonce = Fixture.nonce()
      #expect(try await store.register(Fixture.registration(of: first.key, over: nonce)) == .keyExists)
      #expect(try await store.record(of: first.key.keyID)?.request == first.request)
      #expect(try await store.receipt(of: first.key.keyID) == first.receipt)
      #expect(try await store.admit(Fixture.use(of: first.key, 1, over: nonce)) == .admitted)
    },
    StoreInvariant("Another attestation with a spent nonce is not the same request") { store async throws in
      let first = Fixture.registration()
      _ = try await store.register(first)
      let second = Fixture.registration(of: first.key, over: first.request.nonce)
      #expect(try await store.register(second) == .nonceSpent)
    },
    StoreInvariant("A nonce that registered one key registers no other key") { store async throws in
      let nonce = Fixture.nonce()
      #expect(try await store.register(Fixture.registration(over: nonce)) == .inserted)
      let second = Fixture.registration(over: nonce)
      #expect(try await store.register(second) == .nonceSpent)
      #expect(try await store.record(of: second.key.keyID) == nil)
    },
  ]
}
