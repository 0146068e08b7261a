internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import TestSupport
internal import Testing

extension StoreInvariant {
  static let changes = [
    StoreInvariant("A new reader gets one change for everything, and no change twice") {
      store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      let first = try await store.changes(after: nil)
      #expect(first.changes == [.everything])
      #expect(try await store.changes(after: first.position) == Changes([], upTo: first.position))
    },
    StoreInvariant("Revoking, restoring, removing and replacing keys are reported in order") { store async throws in
      let keys = try await registeredKeys(3, in: store)
      _ = try await store.challengeKeys(orStoring: .random())
      let start = try await store.changes(after: nil).position
      #expect(try await store.revoke(keys[0].keyID, at: Fixture.now))
      #expect(try await store.restore(keys[0].keyID))
      try await store.replaceChallengeKeys(with: .random())
      #expect(try await store.remove([keys[1].keyID], unusedSince: nil) == 1)
      let news = try await store.changes(after: start)
      #expect(news.changes == [.key(keys[0].keyID), .key(keys[0].keyID), .sharedKeys, .key(keys[1].keyID)])
      #expect(try await store.changes(after: news.position).changes == [])
    },
    StoreInvariant("Calls without effect, admissions and registrations are not reported") { store async throws in
      let key = try await registeredKey(in: store)
      let ring = try await store.challengeKeys(orStoring: .random())
      let start = try await store.changes(after: nil).position
      let unknown = Fixture.key().keyID
      #expect(try await !store.revoke(unknown, at: Fixture.now))
      #expect(try await !store.restore(unknown))
      #expect(try await store.remove([unknown], unusedSince: nil) == 0)
      #expect(try await !store.replaceChallengeKeys(.random(), with: ring))
      #expect(try await store.admit(Fixture.use(of: key, 1)) == .admitted)
      _ = try await store.register(Fixture.registration())
      #expect(try await store.changes(after: start) == Changes([], upTo: start))
    },
    StoreInvariant("A revocation that a merge brings is reported") { store async throws in
      let key = try await registeredKey(in: store)
      #expect(try await store.revoke(key.keyID, at: Fixture.now))
      let revoked = try await store.entries(after: nil, limit: 1)
      #expect(try await store.restore(key.keyID))
      let start = try await store.changes(after: nil).position
      _ = try await store.merge(revoked)
      #expect(try await store.changes(after: start).changes == [.key(key.keyID)])
    },
    StoreInvariant("A position ahead of the store means another store: everything may have changed") {
      store async throws in
      let ahead = ChangePosition(try await store.changes(after: nil).position.value + 7)
      #expect(try await store.changes(after: ahead).changes == [.everything])
    },
    StoreInvariant("A reader during 60 concurrent revocations gets each exactly once") {
      store async throws in
      let keys = try await registeredKeys(60, in: store)
      let start = try await store.changes(after: nil).position
      async let received = read(60, from: start, in: store)
      let answers = try await tally(60) { try await store.revoke(keys[$0].keyID, at: Fixture.now) }
      #expect(answers == [true: 60])
      #expect(try await received.count == 60)
      #expect(Set(try await received) == Set(keys.map { .key($0.keyID) }))
    },
    StoreInvariant("A change causes a notice") { store async throws in
      let key = try await registeredKey(in: store)
      var position = try await store.changes(after: nil).position
      let notices = store.notices()
      async let revoked = store.revoke(key.keyID, at: Fixture.now)
      for await _ in notices {
        let news = try await store.changes(after: position)
        if news.changes == [.key(key.keyID)] { break }
        position = news.position
      }
      #expect(try await revoked)
    },
  ]

  /// Reads until there are `count` changes.
  private static func read(
    _ count: Int, from start: ChangePosition, in store: Store
  ) async throws -> [StoreChange] {
    var received: [StoreChange] = []
    var position = start
    while received.count < count {
      let news = try await store.changes(after: position)
      received += news.changes
      position = news.position
    }
    return received
  }

  static let everythingAtOnce = [
    StoreInvariant(
      "During concurrent operations of all kinds, no nonce or counter is accepted twice and no answered call is lost"
    ) {
      store async throws in
      let keys = try await registeredKeys(6, in: store)
      let nonces = (0..<200).map { _ in Fixture.nonce() }
      let outcomes = try await withThrowingTaskGroup(of: [KeyUse].self) { group in
        for worker in 0..<24 {
          group.addTask { try await disturb(store, keys, nonces, seed: UInt64(worker)) }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(!outcomes.isEmpty)
      #expect(Set(outcomes.map(\.nonce)).count == outcomes.count)
      for (keyID, uses) in Dictionary(grouping: outcomes, by: \.keyID) {
        #expect(Set(uses.map(\.counter)).count == uses.count)
        #expect(try await store.record(of: keyID)?.counter == uses.compactMap(\.counter).max())
      }
    }
  ]

  /// Does random operations and returns the admitted uses.
  private static func disturb(
    _ store: Store, _ keys: [DeviceKey], _ nonces: [Nonce], seed: UInt64
  ) async throws -> [KeyUse] {
    var random = SeededGenerator(seed: seed)
    var admitted: [KeyUse] = []
    for step in UInt32(1)...40 {
      let key = keys[Int.random(in: keys.indices, using: &random)]
      let nonce = nonces[Int.random(in: nonces.indices, using: &random)]
      switch Int.random(in: 0..<20, using: &random) {
      case 0: _ = try await store.revoke(key.keyID, at: Fixture.now)
      case 1...3: _ = try await store.restore(key.keyID)
      case 4: _ = try await store.register(Fixture.registration(over: nonce))
      case 5: _ = try await store.keys(.all, after: key.keyID, limit: 3)
      case 6: try await store.forgetNonces(issuedBy: Fixture.now.advanced(by: .seconds(-1)))
      case 7: _ = try await store.merge(store.entries(after: nil, limit: 3))
      default:
        let use = Fixture.use(of: key, UInt32.random(in: step...step + 20, using: &random), over: nonce, window: 8)
        if try await store.admit(use) == .admitted { admitted.append(use) }
      }
    }
    return admitted
  }
}
