internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Testing

extension StoreInvariant {
  static let nonces = [
    StoreInvariant("A removed nonce stays spent, for any later clock") { store async throws in
      let key = try await registeredKey(in: store)
      let (first, second) = (Fixture.nonce(), Fixture.nonce())
      #expect(try await store.admit(Fixture.use(of: key, 1, over: first)) == .admitted)
      try await store.forgetNonces(issuedBy: Fixture.now)
      #expect(try await store.admit(Fixture.use(of: key, 2, over: first)) == .nonceSpent)
      #expect(try await store.register(Fixture.registration(over: first)) == .nonceSpent)
      // Issued in the same millisecond, so it could be a removed nonce.
      #expect(try await store.admit(Fixture.use(of: key, 3, over: second)) == .nonceSpent)
    },
    StoreInvariant("A nonce issued after the removed ones is valid") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.admit(Fixture.use(of: key, 1)) == .admitted)
      try await store.forgetNonces(issuedBy: Fixture.now)
      let later = Fixture.nonce(issuedAt: Fixture.now.advanced(by: .milliseconds(1)))
      #expect(try await store.admit(Fixture.use(of: key, 2, over: later)) == .admitted)
    },
    StoreInvariant("Removing old nonces leaves each later one spent or unspent") { store async throws in
      let key = try await registeredKey(in: store)
      let later = Fixture.now.advanced(by: .seconds(1))
      let (spent, fresh) = (Fixture.nonce(issuedAt: later), Fixture.nonce(issuedAt: later))
      #expect(try await store.admit(Fixture.use(of: key, 1, over: spent)) == .admitted)
      try await store.forgetNonces(issuedBy: Fixture.now)
      #expect(try await store.admit(Fixture.use(of: key, 2, over: spent)) == .nonceSpent)
      #expect(try await store.admit(Fixture.use(of: key, 2, over: fresh)) == .admitted)
    },
    StoreInvariant("Removing up to an earlier instant, or again, makes no nonce valid") { store async throws in
      let key = try await registeredKey(in: store)
      let nonce = Fixture.nonce()
      #expect(try await store.admit(Fixture.use(of: key, 1, over: nonce)) == .admitted)
      for offset in [0, -60, 60] {
        try await store.forgetNonces(issuedBy: Fixture.now.advanced(by: .seconds(offset)))
        #expect(try await store.admit(Fixture.use(of: key, 2, over: nonce)) == .nonceSpent)
      }
    },
    StoreInvariant("A clock that was far ahead for a while does not block later nonces") { store async throws in
      let key = try await registeredKey(in: store)
      try await store.forgetNonces(issuedBy: Fixture.now.advanced(by: .seconds(1_000_000_000)))
      let later = Fixture.nonce(issuedAt: Fixture.now.advanced(by: .seconds(1)))
      #expect(try await store.admit(Fixture.use(of: key, 1, over: later)) == .admitted)
    },
    StoreInvariant("Nonces spent and removed while a clock was ahead do not block nonces of new keys") {
      store async throws in
      let key = try await registeredKey(in: store)
      let ahead = Fixture.nonce(issuedAt: Fixture.now.advanced(by: .seconds(3600)))
      #expect(try await store.admit(Fixture.use(of: key, 1, over: ahead)) == .admitted)
      try await store.forgetNonces(issuedBy: ahead.issuedAt)
      try await store.replaceChallengeKeys(with: .random(madeAt: Fixture.now))
      let later = Fixture.nonce(issuedAt: Fixture.now.advanced(by: .seconds(1)))
      #expect(try await store.admit(Fixture.use(of: key, 2, over: later)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: key, 3, over: later)) == .nonceSpent)
    },
    StoreInvariant("A repeated registration is recognized after its nonce was removed") { store async throws in
      let registration = Fixture.registration()
      _ = try await store.register(registration)
      try await store.forgetNonces(issuedBy: Fixture.now)
      #expect(try await store.register(registration) == .sameRequest)
    },
  ]

  static let challengeKeys = [
    StoreInvariant("The first ring is kept, and every node gets it") { store async throws in
      let first = ChallengeKeyRing.random()
      #expect(try await store.challengeKeys(orStoring: first) == first)
      #expect(try await store.challengeKeys(orStoring: .random()) == first)
    },
    StoreInvariant("Of 50 nodes that start at the same time all get the same ring") { store async throws in
      let rings = try await tally(50) { _ in try await store.challengeKeys(orStoring: .random()) }
      #expect(rings.count == 1)
    },
    StoreInvariant("A ring that replaces another keeps its order and its dates") { store async throws in
      _ = try await store.challengeKeys(orStoring: .random())
      let ring = ChallengeKeyRing.random()
        .rotated(at: Fixture.now, overlap: .seconds(5), life: .seconds(60))
        .rotated(at: Fixture.now.advanced(by: .seconds(1)), overlap: .seconds(5), life: .seconds(60))
      try await store.replaceChallengeKeys(with: ring)
      #expect(ring.keys.count == 3)
      #expect(try await store.challengeKeys(orStoring: .random()) == ring)
    },
    StoreInvariant("Of 20 nodes that rotate the same ring at the same time, one succeeds") {
      store async throws in
      let old = try await store.challengeKeys(orStoring: .random())
      let answers = try await tally(20) { _ in
        let new = old.rotated(at: Fixture.now, overlap: .seconds(5), life: .seconds(60))
        return try await store.replaceChallengeKeys(old, with: new)
      }
      #expect(answers == [true: 1, false: 19])
      #expect(try await store.challengeKeys(orStoring: .random()).keys.count == 2)
    },
  ]
}
