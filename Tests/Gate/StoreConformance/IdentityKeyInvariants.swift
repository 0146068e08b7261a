internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Testing

extension StoreInvariant {
  static let identityKeys = [
    StoreInvariant("The first identity key is kept, every node gets it, and it can sign") { store async throws in
      let first = try IdentityKeyRing.new(at: Fixture.now)
      #expect(try await store.identityKeys(orStoring: first) == first)
      let found = try await store.identityKeys(orStoring: .new(at: Fixture.now))
      #expect(found == first)
      #expect(try found.keys[0].privateKey.pkcs8DER == first.keys[0].privateKey.pkcs8DER)
    },
    StoreInvariant("Of 50 nodes that start at the same time all get the same identity key") { store async throws in
      let rings = try await tally(50) { _ in try await store.identityKeys(orStoring: .new(at: Fixture.now)) }
      #expect(rings.count == 1)
    },
    StoreInvariant("A ring of identity keys keeps its order and its dates") { store async throws in
      let old = try await store.identityKeys(orStoring: .new(at: Fixture.now))
      let ring = try old.rotated(at: Fixture.now, overlap: .seconds(60))
        .rotated(at: Fixture.now.advanced(by: .seconds(1)), overlap: .seconds(60))
      #expect(ring.keys.count == 3)
      #expect(try await store.replaceIdentityKeys(old, with: ring))
      #expect(try await store.identityKeys(orStoring: .new(at: Fixture.now)) == ring)
    },
    StoreInvariant("Of 20 nodes that rotate the same identity keys at the same time, one succeeds") {
      store async throws in
      let old = try await store.identityKeys(orStoring: .new(at: Fixture.now))
      let answers = try await tally(20) { _ in
        let new = try old.rotated(at: Fixture.now, overlap: .seconds(60))
        return try await store.replaceIdentityKeys(old, with: new)
      }
      #expect(answers == [true: 1, false: 19])
      #expect(try await store.identityKeys(orStoring: .new(at: Fixture.now)).keys.count == 2)
    },
    StoreInvariant("New identity keys are reported, and unchanged keys are not") { store async throws in
      let old = try await store.identityKeys(orStoring: .new(at: Fixture.now))
      let start = try await store.changes(after: nil).position
      let new = try old.rotated(at: Fixture.now, overlap: .seconds(60))
      #expect(try await !store.replaceIdentityKeys(new, with: old))
      #expect(try await store.changes(after: start).changes == [])
      #expect(try await store.replaceIdentityKeys(old, with: new))
      #expect(try await store.changes(after: start).changes == [.sharedKeys])
    },
  ]
}
